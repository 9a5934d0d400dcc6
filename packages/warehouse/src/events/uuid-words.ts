/** UUIDs as ClickHouse keeps them, two numbers of 64 bits: here four words of 32, each number's lower one first. */

const UUID_LENGTH = 36;
/** By character code; so large for what is no digit that it shows in a number of four digits. */
const NO_DIGIT = 0x1_0000;
const HEX_DIGITS = new Int32Array(256).fill(NO_DIGIT);
for (let digit = 0; digit < 16; digit += 1) {
  HEX_DIGITS['0123456789abcdef'.charCodeAt(digit)] = digit;
  HEX_DIGITS['0123456789ABCDEF'.charCodeAt(digit)] = digit;
}
const HYPHENS = [8, 13, 18, 23] as const;
const HYPHEN = '-'.charCodeAt(0);

/** @returns whether the text is a UUID, in either case; words may be changed if it is not */
export function setUuid(words: Uint32Array, at: number, text: string): boolean {
  if (text.length !== UUID_LENGTH) return false;
  for (const hyphen of HYPHENS) if (text.charCodeAt(hyphen) !== HYPHEN) return false;
  const a = fourDigits(text, 0);
  const b = fourDigits(text, 4);
  const c = fourDigits(text, 9);
  const d = fourDigits(text, 14);
  const e = fourDigits(text, 19);
  const f = fourDigits(text, 24);
  const g = fourDigits(text, 28);
  const h = fourDigits(text, 32);
  if ((a | b | c | d | e | f | g | h) >= NO_DIGIT) return false;
  words[at] = (c << 16) | d;
  words[at + 1] = (a << 16) | b;
  words[at + 2] = (g << 16) | h;
  words[at + 3] = (e << 16) | f;
  return true;
}

/** 65,536 or more when one of them is no digit. */
function fourDigits(text: string, at: number): number {
  return (digit(text, at) << 12) | (digit(text, at + 1) << 8) | (digit(text, at + 2) << 4) | digit(text, at + 3);
}

function digit(text: string, at: number): number {
  return HEX_DIGITS[text.charCodeAt(at)] ?? NO_DIGIT;
}

export function uuidAt(words: Uint32Array, at: number): string {
  const [b, a, d, c] = [0, 1, 2, 3].map((word) => (words[at + word] ?? 0).toString(16).padStart(8, '0'));
  return `${a}-${b?.slice(0, 4)}-${b?.slice(4)}-${c?.slice(0, 4)}-${c?.slice(4)}${d}`;
}
