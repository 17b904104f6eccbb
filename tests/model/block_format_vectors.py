#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes block_format_vectors.txt: blocks of every format and their values, worked out apart from the engine.

Each value is computed alone, from its index, by the formula of its format; numbers are rationals, and each
product and difference is rounded to f32 by integer arithmetic. usage: block_format_vectors.py > block_format_vectors.txt
"""
from fractions import Fraction


class F32:
    """A finite f32 as a rational with a sign, so that the two zeros are apart."""

    def __init__(self, value, negative=None):
        value = Fraction(value)
        self.negative = value < 0 if negative is None or value != 0 else negative
        magnitude = abs(value)
        if magnitude == 0:
            self.value = Fraction(0)
            return
        exponent = -126                      # of the smallest normal number
        while magnitude >= Fraction(2) ** (exponent + 1):
            exponent += 1
        unit = Fraction(2) ** (exponent - 23)
        steps, rest = divmod(magnitude, unit)
        if rest * 2 > unit or (rest * 2 == unit and steps % 2 == 1):
            steps += 1                       # to nearest, ties to even
        self.value = steps * unit * (-1 if self.negative else 1)

    def __mul__(self, other):
        return F32(self.value * other.value, self.negative != other.negative)

    def __neg__(self):
        return F32(-self.value, not self.negative)

    def __add__(self, other):
        return F32(self.value + other.value, self.negative and other.negative)

    def __sub__(self, other):
        return self + -other

    def bits(self):
        magnitude = abs(self.value)
        sign = 0x80000000 if self.negative else 0
        if magnitude == 0:
            return sign
        exponent = -126
        while magnitude >= Fraction(2) ** (exponent + 1):
            exponent += 1
        steps = magnitude / Fraction(2) ** (exponent - 23)
        assert steps.denominator == 1 and exponent < 128
        steps = int(steps)
        if steps < 1 << 23:                  # subnormal
            return sign | steps
        return sign | (exponent + 127) << 23 | steps - (1 << 23)


def half(low, high):
    bits = low | high << 8
    exponent, fraction = bits >> 10 & 31, bits & 1023
    assert exponent != 31
    value = Fraction(fraction, 1 << 24) if exponent == 0 else Fraction(1024 + fraction) * Fraction(2) ** (exponent - 25)
    return F32(-value if bits >> 15 else value, bool(bits >> 15))


def number(integer):
    return F32(integer, False)


def signed(byte):
    return byte - 256 if byte > 127 else byte


def nibble32(codes, i):
    """Elements 0 to 15 are the low nibbles, 16 to 31 the high ones."""
    return codes[i % 16] >> (4 if i >= 16 else 0) & 15


def q4_0(b, i):
    return number(nibble32(b[2:18], i) - 8) * half(*b[0:2])


def q4_1(b, i):
    return number(nibble32(b[4:20], i)) * half(*b[0:2]) + half(*b[2:4])


def fifth(b, i):
    return int.from_bytes(b, 'little') >> i & 1


def q5_0(b, i):
    return number(nibble32(b[6:22], i) + 16 * fifth(b[2:6], i) - 16) * half(*b[0:2])


def q5_1(b, i):
    return number(nibble32(b[8:24], i) + 16 * fifth(b[4:8], i)) * half(*b[0:2]) + half(*b[2:4])


def q8_0(b, i):
    return number(signed(b[2 + i])) * half(*b[0:2])


IQ4 = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113]


def iq4_nl(b, i):
    return number(IQ4[nibble32(b[2:18], i)]) * half(*b[0:2])


def mxfp4(b, i):
    code = nibble32(b[1:17], i)
    e2m1 = [Fraction(0), Fraction(1, 2), 1, Fraction(3, 2), 2, 3, 4, 6][code & 7]
    scale = Fraction(2) ** (b[0] - 127)
    # The two's table has one zero only: -0 is +0.
    return F32(e2m1 * scale * (-1 if code & 8 else 1), False)


def two_bits(codes, i):
    """256 codes of 2 bits: 32 bytes per half, bit pair g for elements 32 g ... of the half."""
    return codes[32 * (i // 128) + i % 32] >> 2 * (i % 128 // 32) & 3


def q2_k(b, i):
    scale = b[i // 16]
    d, dmin = half(*b[80:82]), half(*b[82:84])
    return d * number(scale & 15) * number(two_bits(b[16:80], i)) - dmin * number(scale >> 4)


def q3_k(b, i):
    k = i // 16
    packed = b[96:108]
    low = packed[k % 8] >> (4 if k >= 8 else 0) & 15
    high = packed[8 + k % 4] >> 2 * (k // 4) & 3
    code = two_bits(b[32:96], i) - (0 if b[i % 32] >> (i // 32) & 1 else 4)
    return half(*b[108:110]) * number(low + 16 * high - 32) * number(code)


def six_bits(packed, k):
    """Scale and minimum of sub-block k."""
    if k < 4:
        return packed[k] % 64, packed[k + 4] % 64
    return packed[k + 4] % 16 + packed[k - 4] // 64 * 16, packed[k + 4] // 16 + packed[k] // 64 * 16


def four_bits(codes, i):
    """256 codes of 4 bits: 32 bytes for each 64, low nibbles first."""
    return codes[32 * (i // 64) + i % 32] >> (4 if i % 64 >= 32 else 0) & 15


def q4_k(b, i):
    scale, minimum = six_bits(b[4:16], i // 32)
    return half(*b[0:2]) * number(scale) * number(four_bits(b[16:144], i)) - half(*b[2:4]) * number(minimum)


def q5_k(b, i):
    scale, minimum = six_bits(b[4:16], i // 32)
    code = four_bits(b[48:176], i) + 16 * (b[16 + i % 32] >> (i // 32) & 1)
    return half(*b[0:2]) * number(scale) * number(code) - half(*b[2:4]) * number(minimum)


def q6_k(b, i):
    within = i % 128
    low = b[64 * (i // 128) + within % 64] >> (4 if within >= 64 else 0) & 15
    code = low + 16 * two_bits(b[128:192], i) - 32
    return half(*b[208:210]) * number(signed(b[192 + i // 16])) * number(code)


def iq4_xs(b, i):
    k = i // 32
    low = b[4 + k // 2] >> (4 if k % 2 else 0) & 15
    high = (b[2] | b[3] << 8) >> 2 * k & 3
    code = nibble32(b[8 + 16 * k:24 + 16 * k], i % 32)
    return half(*b[0:2]) * number(low + 16 * high - 32) * number(IQ4[code])


# name, elements, bytes, formula, where the f16 numbers lie
FORMATS = [
    ('Q4_0', 32, 18, q4_0, [0]), ('Q4_1', 32, 20, q4_1, [0, 2]), ('Q5_0', 32, 22, q5_0, [0]), ('Q5_1', 32, 24, q5_1, [0, 2]),
    ('Q8_0', 32, 34, q8_0, [0]), ('IQ4_NL', 32, 18, iq4_nl, [0]), ('MXFP4', 32, 17, mxfp4, []), ('Q2_K', 256, 84, q2_k, [80, 82]),
    ('Q3_K', 256, 110, q3_k, [108]), ('Q4_K', 256, 144, q4_k, [0, 2]), ('Q5_K', 256, 176, q5_k, [0, 2]), ('Q6_K', 256, 210, q6_k, [208]),
    ('IQ4_XS', 256, 136, iq4_xs, [0])]

# f16 scales: ordinary, negative, the largest, the smallest subnormal, minus zero, one third, 1 + 2^-10
SCALES = [0x2e66, 0xb19a, 0x7bff, 0x0001, 0x8000, 0x3555, 0x3c01, 0x9a3b]
MXFP4_EXPONENTS = [127, 120, 0, 1, 2, 130, 251]


def main():
    state = 20240611
    for name, elements, size, formula, halves in FORMATS:
        for block in range(4 if elements == 256 else 7):
            content = bytearray()
            for _ in range(size):
                state = (state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
                content.append(state >> 56)
            for k, at in enumerate(halves):
                content[at:at + 2] = SCALES[(block + 3 * k) % len(SCALES)].to_bytes(2, 'little')
            if name == 'MXFP4':
                content[0] = MXFP4_EXPONENTS[block]
            values = ''.join('%08x' % formula(bytes(content), i).bits() for i in range(elements))
            print(name, bytes(content).hex(), values)


if __name__ == '__main__':
    main()
