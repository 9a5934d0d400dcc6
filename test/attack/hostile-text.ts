/** Values that have broken services before: the ends of ranges, other scripts, control characters, words of other languages. */
import type { SeededRandom } from '../faults/seeded-random.js';

export const HOSTILE_TEXTS: readonly string[] = [
  '',
  ' ',
  '+',
  '0',
  '-1',
  '-0',
  '1e3',
  '0x10',
  '1.5',
  '٣',
  '99999999999999999999999',
  'NaN',
  'Infinity',
  'null',
  'undefined',
  'true',
  '[]',
  '{}',
  '{x: String}',
  '..',
  '../..',
  './',
  '/',
  '//',
  '\\',
  '%',
  '%00',
  '%2e%2e%2f',
  '*',
  '?',
  '#',
  '&',
  '=',
  ';',
  '\u0000',
  '\n',
  '\r\nX-Injected: 1',
  '\t',
  '\u007f',
  '\u0085',
  '\u2028',
  '\u202eright to left',
  '\ufeff',
  '\ufffd',
  'e\u0301',
  'ﬁ',
  '😀',
  '👩‍👩‍👧‍👦',
  'a'.repeat(256),
  'a'.repeat(257),
  '😀'.repeat(256),
  '😀'.repeat(257),
  'x'.repeat(3_000),
  "' OR 1=1 --",
  '"; DROP TABLE usage_events; --',
  '`',
  '$' + '{jndi:ldap://127.0.0.1/x}',
  '<script>alert(1)</script>',
  '__proto__',
  'constructor',
  'toString',
  'hasOwnProperty',
];

/** Fragments that are not percent-encoded UTF-8. */
const BROKEN_ENCODINGS: readonly string[] = ['%', '%z', '%zz', '%ff', '%c0%80', '%ed%a0%80', '%f5%80%80%80', '%e2%82'];

/** Percent-encodes as clients do, or more or less than they do. The result may be no valid encoding. */
export function encoded(random: SeededRandom, text: string): string {
  const usual = encodeURIComponent(text);
  const way = random.integer(1, 20);
  if (way === 1) return Buffer.from(text).reduce((all, byte) => `${all}%${byte.toString(16).padStart(2, '0')}`, '');
  if (way === 2) return usual.replaceAll('%20', '+');
  if (way === 3) return usual.toLowerCase();
  if (way === 4 && random.chance(0.3)) return usual + random.pick(BROKEN_ENCODINGS);
  return usual;
}
