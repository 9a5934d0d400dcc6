/**
 * ClickHouse's `cityHash64` of one text: the Distributed tables choose a row's shard by it, and so does a worker, which stores
 * each shard's rows there itself. ClickHouse keeps to CityHash 1.0.2, whatever later versions of it compute.
 * Source: ClickHouse contrib/cityhash102/src/city.cc.
 */
const K0 = 0xc3a5c85c97cb3127n;
const K1 = 0xb492b66fbe98f273n;
const K2 = 0x9ae16a3b2f90404fn;
const K3 = 0xc949d7c7509e6557n;
const MULTIPLIER = 0x9ddfea08eb382d69n;

const u64 = (value: bigint) => BigInt.asUintN(64, value);
const rotate = (value: bigint, by: number) => u64((value >> BigInt(by)) | (value << BigInt(64 - by)));
const mixed = (value: bigint) => value ^ (value >> 47n);

function ofTwo(low: bigint, high: bigint): bigint {
  const a = mixed(u64((low ^ high) * MULTIPLIER));
  return u64(mixed(u64((high ^ a) * MULTIPLIER)) * MULTIPLIER);
}

/** @returns from 0 to 2^64 - 1 */
export function cityHash64(text: string): bigint {
  const bytes = Buffer.from(text);
  if (bytes.length <= 16) return upTo16(bytes);
  if (bytes.length <= 32) return upTo32(bytes);
  return bytes.length <= 64 ? upTo64(bytes) : longer(bytes);
}

function upTo16(bytes: Buffer): bigint {
  const size = bytes.length;
  if (size > 8) {
    const last = bytes.readBigUInt64LE(size - 8);
    return ofTwo(bytes.readBigUInt64LE(0), rotate(u64(last + BigInt(size)), size)) ^ last;
  }
  if (size >= 4) {
    return ofTwo(BigInt(size) + (BigInt(bytes.readUInt32LE(0)) << 3n), BigInt(bytes.readUInt32LE(size - 4)));
  }
  if (size === 0) return K2;
  const first = BigInt(bytes.readUInt8(0)) + (BigInt(bytes.readUInt8(size >> 1)) << 8n);
  const last = BigInt(size) + (BigInt(bytes.readUInt8(size - 1)) << 2n);
  return u64(mixed(u64(first * K2) ^ u64(last * K3)) * K2);
}

function upTo32(bytes: Buffer): bigint {
  const size = bytes.length;
  const a = u64(bytes.readBigUInt64LE(0) * K1);
  const b = bytes.readBigUInt64LE(8);
  const c = u64(bytes.readBigUInt64LE(size - 8) * K2);
  const d = u64(bytes.readBigUInt64LE(size - 16) * K0);
  return ofTwo(u64(rotate(u64(a - b), 43) + rotate(c, 30) + d), u64(a + rotate(b ^ K3, 20) - c + BigInt(size)));
}

function upTo64(bytes: Buffer): bigint {
  const size = bytes.length;
  const at = (offset: number) => bytes.readBigUInt64LE(offset);
  const start = u64(at(0) + (BigInt(size) + at(size - 16)) * K0);
  const [v1, v2] = fourWords(start, at(24), [at(8), at(16)]);
  const [w1, w2] = fourWords(u64(at(16) + at(size - 32)), at(size - 8), [at(size - 24), at(size - 16)]);
  const sum = mixed(u64((v1 + w2) * K2 + (w1 + v2) * K0));
  return u64(mixed(u64(sum * K0 + v2)) * K2);
}

function fourWords(first: bigint, z: bigint, [second, third]: readonly [bigint, bigint]): [bigint, bigint] {
  const b = rotate(u64(first + z), 52);
  const beforeThird = u64(first + second);
  const c = rotate(first, 37) + rotate(beforeThird, 7);
  const a = u64(beforeThird + third);
  return [u64(a + z), u64(b + rotate(a, 31) + c)];
}

function longer(bytes: Buffer): bigint {
  const size = bytes.length;
  const at = (offset: number) => bytes.readBigUInt64LE(offset);
  let x = at(0);
  let y = at(size - 16) ^ K1;
  let z = at(size - 56) ^ K0;
  let v = seeded(bytes, size - 64, BigInt(size), y);
  let w = seeded(bytes, size - 32, u64(BigInt(size) * K1), K0);
  z = u64(z + mixed(v[1]) * K1);
  x = u64(rotate(u64(z + x), 39) * K1);
  y = u64(rotate(y, 33) * K1);
  const end = (size - 1) & ~63;
  for (let from = 0; from < end; from += 64) {
    x = u64(rotate(u64(x + y + v[0] + at(from + 16)), 37) * K1) ^ w[1];
    y = u64(rotate(u64(y + v[1] + at(from + 48)), 42) * K1) ^ v[0];
    z = rotate(z ^ w[0], 33);
    v = seeded(bytes, from, u64(v[1] * K1), u64(x + w[0]));
    w = seeded(bytes, from + 32, u64(z + w[1]), y);
    [x, z] = [z, x];
  }
  return ofTwo(u64(ofTwo(v[0], w[0]) + mixed(y) * K1 + z), u64(ofTwo(v[1], w[1]) + x));
}

/** Of the 32 bytes from the offset on. */
function seeded(bytes: Buffer, offset: number, seedA: bigint, seedB: bigint): [bigint, bigint] {
  const at = (word: number) => bytes.readBigUInt64LE(offset + 8 * word);
  const first = u64(seedA + at(0));
  const b = rotate(u64(seedB + first + at(3)), 21);
  const a = u64(first + at(1) + at(2));
  return [u64(a + at(3)), u64(b + rotate(a, 44) + first)];
}
