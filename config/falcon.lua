-- SPDX-License-Identifier: BSD-3-Clause
--
-- Dissectors of PSP, Falcon (revision 0.9) and RDMA over Falcon for Wireshark and tshark.
--
--   tshark -X lua_script:config/falcon.lua -r capture.pcap -V
--
-- or copy this file and falcon_crypto.lua into the folder of personal Lua plugins. To decrypt
-- packets, set the preference psp.keys ("SPI=KEY SPI=KEY ...", all in hex), or the two keys of the
-- receiving device in psp.device_key_0 and psp.device_key_1:
--
--   tshark -X lua_script:config/falcon.lua \
--       -o 'psp.keys:12345678=96c22dc799198090b74b70ae468e4e30' ...
--
-- Packets that are only authenticated (GMAC), and Saker's mode without crypto, need no key.
-- doc/falcon-wire.md describes this mode and the composition of Saker's IVs.

local folder = debug.getinfo(1, "S").source:match("^@(.*[/\\])") or ""
local crypto = dofile(folder .. "falcon_crypto.lua")

local psp = Proto("psp", "PSP Security Protocol")
local falcon = Proto("falcon", "Falcon Transport")
local rof = Proto("rof", "RDMA over Falcon")

local UDP_PORT, NEXT_FALCON, NO_CRYPTO = 1000, 252, 15

local versions = {[0] = "AES-GCM-128", [1] = "AES-GCM-256", [2] = "AES-GMAC-128",
    [3] = "AES-GMAC-256", [15] = "none (Saker)"}
local types = {[0] = "Pull Request", [3] = "Pull Data", [5] = "Push Data", [6] = "Resync",
    [8] = "NACK", [9] = "BACK", [10] = "EACK"}
local nack_codes = {"insufficient resources", "receiver not ready", [4] = "xLR drop",
    [6] = "complete in error",
    [7] = "non-recoverable error", [8] = "invalid CID"}
local resync_codes = {"complete in error", "local xLR", "retransmissions exhausted",
    "transaction timed out", "remote xLR",
    "non-recoverable error", "invalid CID"}
local operations = {[0] = "SEND First", "SEND Middle", "SEND Last", "SEND Last with Immediate",
    "SEND Only",
    "SEND Only with Immediate", "WRITE First", "WRITE Middle", "WRITE Last",
    "WRITE Last with Immediate", "WRITE Only",
    "WRITE Only with Immediate", "READ Request", "READ Response First", "READ Response Middle",
    "READ Response Last",
    "READ Response Only", [18] = "ATOMIC Response", [19] = "ATOMIC CmpSwap",
    [20] = "ATOMIC FetchAdd",
    [22] = "SEND Last with Invalidate", [23] = "SEND Only with Invalidate"}

local opcodes = {}
for op, name in pairs(operations) do
    opcodes[op] = "RC " .. name
    opcodes[0xa0 + op] = "XRC " .. name
end
opcodes[0x64], opcodes[0x65] = "UD SEND Only", "UD SEND Only with Immediate"

-- ---- Fields: {name, text, constructor, base, values, mask}, stored as f["psp.spi"] ----

local D, H = base.DEC, base.HEX
local u8, u16, u24, u32, u64, flag = ProtoField.uint8, ProtoField.uint16, ProtoField.uint24,
    ProtoField.uint32, ProtoField.uint64,
    ProtoField.bool
local f = {}

local function fields(proto, list)
    local all = {}
    for _, l in ipairs(list) do
        local name = proto.name:lower() .. "." .. l[1]
        if l[3] == flag then
            f[name] = flag(name, l[2], l[4] or base.NONE, nil, l[6])
        elseif l[3] == ProtoField.bytes then
            f[name] = ProtoField.bytes(name, l[2])
        else
            f[name] = l[3](name, l[2], l[4], l[5], l[6])
        end
        all[#all + 1] = f[name]
    end
    proto.fields = all
end

fields(psp, {
    {"next", "Next header", u8, D}, {"ext_len", "Header extension length", u8, D},
    {"crypt_offset", "Crypt offset", u8, D, nil, 0x3f},
    {"sample", "Sample", flag, 8, nil, 0x80}, {"drop", "Drop", flag, 8, nil, 0x40},
    {"version", "Version", u8, D, versions, 0x3c},
    {"has_vc", "Cookie present", flag, 8, nil, 0x02}, {"spi", "SPI", u32, H}, {"iv", "IV", u64, H},
    {"time", "Transmit time (131.072 ns)", u32, D}, {"counter", "Counter", u16, D},
    {"vc", "Virtualisation cookie", u64, H},
    {"icv", "Integrity check value", ProtoField.bytes},
    {"icv_good", "Integrity check value is good", flag},
    {"encrypted", "Encrypted", ProtoField.bytes},
})
fields(falcon, {
    {"version", "Version", u8, D, nil, 0xf0}, {"cid", "Connection ID", u24, H},
    {"function", "Destination function", u24, H},
    {"proto", "Protocol", u8, D, {[2] = "RDMA", [3] = "NVMe"}, 0xe0},
    {"type", "Packet type", u8, D, types, 0x1e},
    {"ar", "Ack requested", flag, 8, nil, 0x01}, {"dbpsn", "Data window base PSN", u32, D},
    {"rbpsn", "Request window base PSN", u32, D}, {"psn", "PSN", u32, D}, {"rsn", "RSN", u32, D},
    {"request_len", "Request length", u16, D}, {"resync.code", "Resync code", u8, D, resync_codes},
    {"resync.type", "Replaced packet type", u8, D, types, 0xf0},
    {"resync.vendor", "Vendor defined", u32, H},
    {"t1", "t1, sent there (131.072 ns)", u32, D}, {"t2", "t2, received here (131.072 ns)", u32, D},
    {"hops", "Forward hops", u32, D, nil, 0xf0000000},
    {"rx_level", "Receive buffer level", u32, D, nil, 0x0f800000},
    {"ecn", "ECN marked packets", u32, D, nil, 0x007ffe00},
    {"rue", "RUE information", u32, H, nil, 0x007ffffc},
    {"nack.rue", "RUE information", u32, H, nil, 0x007fffff},
    {"own.data", "Out of window: data", flag, 32, nil, 2},
    {"own.request", "Out of window: requests", flag, 32, nil, 1},
    {"data_ack", "Data acknowledged", ProtoField.bytes},
    {"data_rx", "Data received", ProtoField.bytes},
    {"req_map", "Requests received", ProtoField.bytes}, {"nack.psn", "Refused PSN", u32, D},
    {"nack.code", "NACK code", u8, D, nack_codes},
    {"nack.rnr", "RNR timeout code", u8, D, nil, 0x1f},
    {"nack.request", "Of the request window", flag, 8, nil, 0x80},
    {"nack.ulp_code", "ULP code", u8, H},
    {"payload_len", "Payload length", u32, D},
})
fields(rof, {
    {"version", "Version", u8, D, nil, 0xf0}, {"ce", "Complete in error", flag, 8, nil, 0x10},
    {"pad", "Padding", u8, D, nil, 0x0c},
    {"se", "Solicited event", flag, 8, nil, 0x01}, {"opcode", "Opcode", u8, H, opcodes},
    {"dest_qp", "Destination QP", u24, H},
    {"sn", "Sequence number", u32, D}, {"xrc_srq", "XRC SRQ", u24, H}, {"qkey", "Q_Key", u32, H},
    {"src_qp", "Source QP", u24, H},
    {"va", "Virtual address", u64, H}, {"rkey", "R_Key", u32, H}, {"length", "Length", u32, D},
    {"swap_add", "Swap or add", u64, H}, {"compare", "Compare", u64, H},
    {"original", "Original", u64, H},
    {"rmsn", "Request message sequence number", u32, D}, {"offset", "Message offset", u32, D},
    {"sink_va", "Sink virtual address", u64, H}, {"sink_lkey", "Sink L_Key", u32, H},
    {"imm", "Immediate data", u32, H},
    {"inv_rkey", "R_Key to invalidate", u32, H}, {"payload_len", "Payload length", u32, D},
    {"payload", "Payload", ProtoField.bytes},
})

local bad_length = ProtoExpert.new("falcon.bad_length", "Lengths disagree", expert.group.MALFORMED,
    expert.severity.ERROR)
local reserved = ProtoExpert.new("falcon.reserved", "A reserved value", expert.group.PROTOCOL,
    expert.severity.WARN)
falcon.experts = {bad_length, reserved}

psp.prefs.keys = Pref.string("Keys", "", "SPI=KEY, in hex, several with blanks between")
psp.prefs.device_key_0 = Pref.string("Device key 0", "", "32 bytes in hex: SPIs below 80000000")
psp.prefs.device_key_1 = Pref.string("Device key 1", "", "32 bytes in hex: SPIs from 80000000 on")

-- ---- RDMA over Falcon (section 8) ----

-- Each header behind RBTH is a list of {field, its bytes, reserved bytes behind it}.

local RETH = {{"va", 8}, {"rkey", 4}, {"length", 4}}
local SETH, OETH, STETH = {{"rmsn", 4}}, {{"offset", 4}}, {{"sink_va", 8}, {"sink_lkey", 4}}
local IMMDT, IETH = {{"imm", 4}}, {{"inv_rkey", 4}}
local ATOMIC, ATOMIC_ACK = {{"va", 8}, {"rkey", 4}, {"swap_add", 8}, {"compare", 8}},
    {{"original", 8}}
local XRCETH, DETH = {{"xrc_srq", 3, 1}}, {{"qkey", 4}, {"src_qp", 3, 1}}

-- Returns the headers by the low five bits of an opcode of RC or XRC.
local function extended_headers(op)
    local imm = (op == 3 or op == 5 or op == 9 or op == 11) and IMMDT or {}
    if op <= 5 then return {SETH, OETH, imm} end
    if op <= 11 then return {RETH, #imm > 0 and SETH or {}, imm} end
    if op == 12 then return {RETH, SETH, STETH} end
    if op <= 16 then return {STETH} end
    if op == 18 then return {ATOMIC_ACK, STETH} end
    if op <= 20 then return {ATOMIC, SETH, STETH} end
    return {SETH, OETH, IETH}
end

local function headers_of(opcode)
    if opcode >= 0xa0 then
        local op = opcode - 0xa0
        local list = extended_headers(op)
        if not (op >= 13 and op <= 18) then table.insert(list, 1, XRCETH) end
        return list
    end
    if opcode == 0x64 then return {DETH} end
    if opcode == 0x65 then return {DETH, IMMDT} end
    return extended_headers(opcode)
end

function rof.dissector(tvb, pinfo, tree)
    local t = tree:add(rof, tvb())
    local opcode = tvb(3, 1):uint()
    local pad = tvb(2, 1):bitfield(4, 2)
    t:add(f["rof.version"], tvb(0, 1))
    for _, name in ipairs({"ce", "pad", "se"}) do t:add(f["rof." .. name], tvb(2, 1)) end
    local item = t:add(f["rof.opcode"], tvb(3, 1))
    t:add(f["rof.dest_qp"], tvb(4, 3))
    t:add(f["rof.sn"], tvb(8, 4))
    if not opcodes[opcode] then return item:add_proto_expert_info(reserved) end
    t:append_text(", " .. opcodes[opcode])
    pinfo.cols.info:append(" | " .. opcodes[opcode])
    local at = 12
    for _, header in ipairs(headers_of(opcode)) do
        for _, field in ipairs(header) do
            local next_at = at + field[2] + (field[3] or 0)
            if next_at > tvb:len() then return item:add_proto_expert_info(bad_length) end
            t:add(f["rof." .. field[1]], tvb(at, field[2]))
            at = next_at
        end
    end
    if at + pad > tvb:len() then return item:add_proto_expert_info(bad_length) end
    local len = tvb:len() - at - pad
    t:add(f["rof.payload_len"], tvb(at, len), len):set_generated()
    if len > 0 then t:add(f["rof.payload"], tvb(at, len)) end
end

-- ---- Falcon (section 7) ----

local function add_ack(t, tvb, kind)
    t:add(f["falcon.t1"], tvb(16, 4))
    t:add(f["falcon.t2"], tvb(20, 4))
    for _, name in ipairs({"hops", "rx_level", "ecn"}) do
        t:add(f["falcon." .. name], tvb(24, 4))
    end
    if kind == 8 then
        t:add(f["falcon.nack.rue"], tvb(28, 4))
        t:add(f["falcon.nack.psn"], tvb(32, 4))
        t:add(f["falcon.nack.code"], tvb(36, 1))
        t:add(f["falcon.nack.rnr"], tvb(37, 1))
        t:add(f["falcon.nack.request"], tvb(38, 1))
        t:add(f["falcon.nack.ulp_code"], tvb(39, 1))
        return
    end
    for _, name in ipairs({"rue", "own.data", "own.request"}) do
        t:add(f["falcon." .. name], tvb(28, 4))
    end
    if kind == 10 then
        t:add(f["falcon.data_ack"], tvb(32, 16))
        t:add(f["falcon.data_rx"], tvb(48, 16))
        t:add(f["falcon.req_map"], tvb(64, 8))
    end
end

local header_lengths = {[0] = 32, [3] = 24, [5] = 28, [6] = 32, [8] = 40, [9] = 32, [10] = 72}

local function add_base(t, tvb, kind)
    t:add(f["falcon.function"], tvb(4, 3))
    t:add(f["falcon.proto"], tvb(7, 1))
    t:add(f["falcon.ar"], tvb(7, 1))
    t:add(f["falcon.psn"], tvb(16, 4))
    t:add(f["falcon.rsn"], tvb(20, 4))
    if kind == 0 or kind == 5 then
        local item = t:add(f["falcon.request_len"], tvb(26, 2))
        if kind == 5 and tvb(26, 2):uint() ~= tvb:len() - 28 then
            item:add_proto_expert_info(bad_length)
        end
    elseif kind == 6 then
        t:add(f["falcon.resync.code"], tvb(24, 1))
        t:add(f["falcon.resync.type"], tvb(25, 1))
        t:add(f["falcon.resync.vendor"], tvb(28, 4))
    end
end

function falcon.dissector(tvb, pinfo, tree)
    local t = tree:add(falcon, tvb())
    pinfo.cols.protocol = "Falcon"
    if tvb:len() < 24 then return t:add_proto_expert_info(bad_length) end
    local kind = tvb(7, 1):bitfield(3, 4)
    t:add(f["falcon.version"], tvb(0, 1))
    t:add(f["falcon.cid"], tvb(1, 3))
    local item = t:add(f["falcon.type"], tvb(7, 1))
    local len = header_lengths[kind]
    if not len then return item:add_proto_expert_info(reserved) end
    if tvb:len() < len then return item:add_proto_expert_info(bad_length) end
    t:append_text(", " .. types[kind])
    t:add(f["falcon.dbpsn"], tvb(8, 4))
    t:add(f["falcon.rbpsn"], tvb(12, 4))
    if kind >= 8 then
        pinfo.cols.info = string.format("%s CID %06x data %u requests %u", types[kind],
            tvb(1, 3):uint(), tvb(8, 4):uint(),
            tvb(12, 4):uint())
        add_ack(t, tvb, kind)
        return
    end
    pinfo.cols.info = string.format("%s CID %06x PSN %u RSN %u", types[kind], tvb(1, 3):uint(),
        tvb(16, 4):uint(), tvb(20, 4):uint())
    add_base(t, tvb, kind)
    local payload = tvb:len() - len
    t:add(f["falcon.payload_len"], tvb(len, payload), payload):set_generated()
    if payload >= 12 and tvb(7, 1):bitfield(0, 3) == 2 then
        rof.dissector(tvb(len):tvb(), pinfo, tree)
    end
end

-- ---- PSP ----

local function unhex(s)
    return (s:gsub("%x%x", function(h) return string.char(tonumber(h, 16)) end))
end

local keys = {} -- cache, by SPI, version and the preferences

local function key_of(spi, version)
    local name = table.concat({spi, version, psp.prefs.keys, psp.prefs.device_key_0,
        psp.prefs.device_key_1}, "/")
    if keys[name] == nil then
        local len = version % 2 == 1 and 32 or 16
        local device = spi >= 0x80000000 and psp.prefs.device_key_1 or psp.prefs.device_key_0
        local key = #device == 64 and crypto.derive(unhex(device), spi, len)
        for s, k in psp.prefs.keys:gmatch("(%x+)=(%x+)") do
            if tonumber(s, 16) == spi and #k == 2 * len then key = unhex(k) end
        end
        keys[name] = key and crypto.key(key) or false
    end
    return keys[name]
end

local function add_header(t, tvb, len)
    t:add(f["psp.next"], tvb(0, 1))
    t:add(f["psp.ext_len"], tvb(1, 1))
    t:add(f["psp.crypt_offset"], tvb(2, 1))
    for _, name in ipairs({"sample", "drop", "version", "has_vc"}) do
        t:add(f["psp." .. name], tvb(3, 1))
    end
    t:add(f["psp.spi"], tvb(4, 4))
    local iv = t:add(f["psp.iv"], tvb(8, 8))
    iv:add(f["psp.time"], tvb(10, 4)) -- the 32 of 48 bits that an acknowledgement echoes
    iv:add(f["psp.counter"], tvb(14, 2))
    if len == 24 then t:add(f["psp.vc"], tvb(16, 8)) end
end

-- Returns the plain text between PSP header and ICV, or nil without a key or with a wrong ICV.
local function open(t, tvb, len, version, clear)
    if version == NO_CRYPTO then return tvb:len() > len and tvb(len):tvb() or nil end
    local text_end = tvb:len() - 16
    local icv = t:add(f["psp.icv"], tvb(text_end, 16))
    local key = key_of(tvb(4, 4):uint(), version)
    local raw = function(from, to) return from < to and tvb(from, to - from):bytes():raw() or "" end
    local from = version <= 1 and clear or text_end
    if key then
        local plain, good = crypto.open(key, raw(4, 16), raw(0, from), raw(from, text_end),
            raw(text_end, text_end + 16))
        icv:add(f["psp.icv_good"], good):set_generated()
        if not good then return nil end
        if version <= 1 then
            return ByteArray.new(raw(len, clear) .. plain, true):tvb("Decrypted")
        end
    end
    return version > 1 and text_end > len and tvb(len, text_end - len):tvb() or nil
end

function psp.dissector(tvb, pinfo, tree)
    if tvb:len() < 16 then return 0 end
    local len = tvb(3, 1):bitfield(6, 1) == 1 and 24 or 16
    local version = tvb(3, 1):bitfield(2, 4)
    local clear = 16 + 4 * tvb(2, 1):bitfield(2, 6)
    if not versions[version] or tvb(1, 1):uint() ~= len / 8 - 1 or clear < len or
        tvb:len() < clear + (version == NO_CRYPTO and 0 or 16) then
        return 0
    end
    local t = tree:add(psp, tvb(0, len))
    pinfo.cols.protocol = "PSP"
    pinfo.cols.info = string.format("SPI %08x, %s", tvb(4, 4):uint(), versions[version])
    add_header(t, tvb, len)
    local inner, next_header = open(t, tvb, len, version, clear), tvb(0, 1):uint()
    if not inner then
        if next_header == NEXT_FALCON and clear >= len + 4 and version ~= NO_CRYPTO then
            t:add(f["falcon.cid"], tvb(len + 1, 3))
        end
        local len_left = tvb:len() - 16 - clear
        if version ~= NO_CRYPTO and len_left > 0 then
            t:add(f["psp.encrypted"], tvb(clear, len_left))
        end
    elseif next_header == NEXT_FALCON then
        falcon.dissector(inner, pinfo, tree)
    elseif next_header == 4 or next_header == 41 then
        local ip = Dissector.get(next_header == 4 and "ip" or "ipv6")
        -- A dissector of any protocol may end with an error at a damaged packet.
        if not pcall(ip.call, ip, inner, pinfo, tree) then t:add_proto_expert_info(bad_length) end
    end
    return tvb:len()
end

DissectorTable.get("udp.port"):add(UDP_PORT, psp)
DissectorTable.get("ip.proto"):add(NEXT_FALCON, falcon)
