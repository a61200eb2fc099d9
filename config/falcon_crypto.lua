-- SPDX-License-Identifier: BSD-3-Clause
--
-- AES-GCM, AES-GMAC and PSP's key derivation in plain Lua, for falcon.lua in the same folder.
-- Debian 12's Wireshark provides no cipher for Lua. This code is fast enough for captures only.
--
-- Words have 32 bits and are unsigned. A 128-bit block is four words, the most significant first.

local bit = bit32 or bit
local band, bor, bxor, lshift, rshift = bit.band, bit.bor, bit.bxor, bit.lshift, bit.rshift

local crypto = {}

-- ---- AES (FIPS 197), encryption only ----

local sbox = {}
local t0, t1, t2, t3 = {}, {}, {}, {}

local function times2(v)
    v = lshift(v, 1)
    return v > 255 and bxor(v, 0x11b) or v
end

local function rotl8(v, n)
    return band(bor(lshift(v, n), rshift(v, 8 - n)), 255)
end

-- Computes the S-box from multiplicative inverses, by the powers of 3 and those of its inverse.
local function make_tables()
    local p, q = 1, 1
    repeat
        p = bxor(p, times2(p))
        q = bxor(q, lshift(q, 1))
        q = bxor(q, lshift(q, 2))
        q = bxor(q, lshift(q, 4))
        q = band(q, 255)
        if q > 127 then q = bxor(q, 9) end
        sbox[p] = bxor(bxor(bxor(bxor(q, rotl8(q, 1)), rotl8(q, 2)), rotl8(q, 3)),
            bxor(rotl8(q, 4), 0x63))
    until p == 1
    sbox[0] = 0x63
    for i = 0, 255 do
        local s = sbox[i]
        local d = times2(s)
        local t = bxor(d, s)
        t0[i] = bor(lshift(d, 24), lshift(s, 16), lshift(s, 8), t)
        t1[i] = bor(lshift(t, 24), lshift(d, 16), lshift(s, 8), s)
        t2[i] = bor(lshift(s, 24), lshift(t, 16), lshift(d, 8), s)
        t3[i] = bor(lshift(s, 24), lshift(s, 16), lshift(t, 8), d)
    end
end
make_tables()

local function word(s, at)
    local a, b, c, d = s:byte(at, at + 3)
    return bor(lshift(a or 0, 24), lshift(b or 0, 16), lshift(c or 0, 8), d or 0)
end

local function bytes(w)
    return string.char(rshift(w, 24), band(rshift(w, 16), 255), band(rshift(w, 8), 255),
        band(w, 255))
end

local function sub_word(w)
    return bor(lshift(sbox[rshift(w, 24)], 24), lshift(sbox[band(rshift(w, 16), 255)], 16),
        lshift(sbox[band(rshift(w, 8), 255)], 8), sbox[band(w, 255)])
end

-- Returns the round keys, four words each, of a key of 16 or 32 bytes.
local function expand(key)
    local n = #key / 4
    local rounds = n + 6
    local w, rcon = {rounds = rounds}, 1
    for i = 0, n - 1 do w[i] = word(key, 4 * i + 1) end
    for i = n, 4 * rounds + 3 do
        local t = w[i - 1]
        if i % n == 0 then
            t = bxor(sub_word(bor(lshift(t, 8), rshift(t, 24))), lshift(rcon, 24))
            rcon = times2(rcon)
        elseif n > 6 and i % n == 4 then
            t = sub_word(t)
        end
        w[i] = bxor(w[i - n], t)
    end
    return w
end

local function column(a, b, c, d, k)
    return bxor(t0[rshift(a, 24)], t1[band(rshift(b, 16), 255)], t2[band(rshift(c, 8), 255)],
        t3[band(d, 255)], k)
end

local function last_column(a, b, c, d, k)
    return bxor(bor(lshift(sbox[rshift(a, 24)], 24), lshift(sbox[band(rshift(b, 16), 255)], 16),
        lshift(sbox[band(rshift(c, 8), 255)], 8), sbox[band(d, 255)]), k)
end

local function encrypt(w, a, b, c, d)
    a, b, c, d = bxor(a, w[0]), bxor(b, w[1]), bxor(c, w[2]), bxor(d, w[3])
    for i = 4, 4 * w.rounds - 4, 4 do
        a, b, c, d = column(a, b, c, d, w[i]), column(b, c, d, a, w[i + 1]),
            column(c, d, a, b, w[i + 2]),
            column(d, a, b, c, w[i + 3])
    end
    local i = 4 * w.rounds
    return last_column(a, b, c, d, w[i]), last_column(b, c, d, a, w[i + 1]),
        last_column(c, d, a, b, w[i + 2]),
        last_column(d, a, b, c, w[i + 3])
end

-- ---- GHASH (NIST SP 800-38D), four bits at a time ----

-- Shifts a block by one bit to the right, which multiplies it by x.
local function times_x(a, b, c, d)
    local out = band(d, 1)
    d = bor(rshift(d, 1), lshift(band(c, 1), 31))
    c = bor(rshift(c, 1), lshift(band(b, 1), 31))
    b = bor(rshift(b, 1), lshift(band(a, 1), 31))
    a = rshift(a, 1)
    if out == 1 then a = bxor(a, 0xe1000000) end
    return a, b, c, d
end

-- The words to add on the left for each value of four bits that are shifted out on the right.
local reduction = {}
for k = 0, 15 do
    local a, b, c, d = 0, 0, 0, k
    for _ = 1, 4 do a, b, c, d = times_x(a, b, c, d) end
    reduction[k] = a
end

-- Returns the products of H with each of the 16 polynomials of degree 3 or less.
local function ghash_table(a, b, c, d)
    local m = {[0] = {0, 0, 0, 0}}
    for _, k in ipairs({8, 4, 2, 1}) do
        m[k] = {a, b, c, d}
        a, b, c, d = times_x(a, b, c, d)
    end
    for k = 1, 15 do
        if not m[k] then
            local low = band(k, -k)
            local x, y = m[low], m[k - low]
            m[k] = {bxor(x[1], y[1]), bxor(x[2], y[2]), bxor(x[3], y[3]), bxor(x[4], y[4])}
        end
    end
    return m
end

local function ghash_block(m, a, b, c, d)
    local x = {d, c, b, a}
    local za, zb, zc, zd = 0, 0, 0, 0
    for i = 1, 4 do
        for shift = 0, 28, 4 do
            local p = m[band(rshift(x[i], shift), 15)]
            local out = band(zd, 15)
            zd = bxor(bor(rshift(zd, 4), lshift(band(zc, 15), 28)), p[4])
            zc = bxor(bor(rshift(zc, 4), lshift(band(zb, 15), 28)), p[3])
            zb = bxor(bor(rshift(zb, 4), lshift(band(za, 15), 28)), p[2])
            za = bxor(rshift(za, 4), reduction[out], p[1])
        end
    end
    return za, zb, zc, zd
end

local function ghash(m, aad, text)
    local a, b, c, d = 0, 0, 0, 0
    for _, s in ipairs({aad, text}) do
        for i = 1, #s, 16 do
            a, b, c, d = ghash_block(m, bxor(a, word(s, i)), bxor(b, word(s, i + 4)),
                bxor(c, word(s, i + 8)),
                bxor(d, word(s, i + 12)))
        end
    end
    return ghash_block(m, a, bxor(b, #aad * 8), c, bxor(d, #text * 8))
end

-- ---- Functions for falcon.lua ----

-- Prepares a key of 16 or 32 bytes for open().
function crypto.key(key)
    local k = {aes = expand(key)}
    k.hash = ghash_table(encrypt(k.aes, 0, 0, 0, 0))
    return k
end

-- Decrypts `text` with a nonce of 12 bytes. For GMAC, `aad` holds all bytes and `text` is empty.
-- Returns the plain text, and whether `icv` is correct.
function crypto.open(k, nonce, aad, text, icv)
    local n1, n2, n3 = word(nonce, 1), word(nonce, 5), word(nonce, 9)
    local plain = {}
    for i = 1, #text, 16 do
        local a, b, c, d = encrypt(k.aes, n1, n2, n3, (i - 1) / 16 + 2)
        plain[#plain + 1] = bytes(bxor(a, word(text, i))) .. bytes(bxor(b, word(text, i + 4))) ..
            bytes(bxor(c, word(text, i + 8))) .. bytes(bxor(d, word(text, i + 12)))
    end
    local a, b, c, d = ghash(k.hash, aad, text)
    local e, f, g, h = encrypt(k.aes, n1, n2, n3, 1)
    local tag = bytes(bxor(a, e)) .. bytes(bxor(b, f)) .. bytes(bxor(c, g)) .. bytes(bxor(d, h))
    return table.concat(plain):sub(1, #text), tag == icv
end

-- Derives the key of `len` bytes of an SPI from a device key: AES-256-CMAC of one block in counter
-- mode.
function crypto.derive(device_key, spi, len)
    local w = expand(device_key)
    local a, b, c, d = encrypt(w, 0, 0, 0, 0)
    local s1, s2, s3 = bor(lshift(a, 1), rshift(b, 31)), bor(lshift(b, 1), rshift(c, 31)),
        bor(lshift(c, 1), rshift(d, 31))
    local s4 = bxor(lshift(d, 1), rshift(a, 31) * 0x87)
    local label = len == 32 and 0x50763100 or 0x50763000
    local key = ""
    for counter = 1, len / 16 do
        for _, v in ipairs({encrypt(w, bxor(counter, s1), bxor(label, s2), bxor(spi, s3),
            bxor(len * 8, s4))}) do
            key = key .. bytes(v)
        end
    end
    return key
end

return crypto
