import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { formatTimestamp, parseTimestamp } from './timestamp.js';

const OCTOBER = Date.UTC(2025, 9, 1);

describe('an accepted timestamp', () => {
  it.each(['Z', 'z', '+00:00'])('ends in %s', (offset) => {
    expect(parseTimestamp(`2025-10-01T00:00:00${offset}`)).toBe(OCTOBER);
  });

  it('may have a lower-case t (RFC 3339, section 5.6)', () => {
    expect(parseTimestamp('2025-10-01t00:00:00Z')).toBe(OCTOBER);
  });

  it.each([
    ['', 0],
    ['.1', 100],
    ['.12', 120],
    ['.123', 123],
    ['.1239', 123],
    ['.12399', 123],
    ['.123999', 123],
    ['.1239999', 123],
    ['.12399999', 123],
    ['.123999999', 123],
    ['.000999999', 0],
  ])('has 0 to 9 fraction digits, cut to the millisecond: "%s" is %p ms', (fraction, milliseconds) => {
    expect(parseTimestamp(`2025-10-01T00:00:00${fraction}Z`)).toBe(OCTOBER + milliseconds);
  });

  it.each(['2024-02-29', '2000-02-29', '2400-02-29', '2025-12-31', '0001-01-01'])('is on a real day: %s', (day) => {
    expect(parseTimestamp(`${day}T23:59:59.999Z`)).toBe(new Date(`${day}T23:59:59.999Z`).getTime());
  });

  it('is cut downwards before 1970 too', () => {
    expect(parseTimestamp('1969-12-31T23:59:59.9999Z')).toBe(-1);
  });
});

describe('a refused timestamp', () => {
  it.each([
    ['another offset', '2025-10-01T00:00:00+01:00'],
    ['the unknown local offset of RFC 3339', '2025-10-01T00:00:00-00:00'],
    ['no offset', '2025-10-01T00:00:00'],
    ['a plus that became a space', '2025-10-01T00:00:00 00:00'],
    ['an offset without a colon', '2025-10-01T00:00:00+0000'],
    ['ten fraction digits', '2025-10-01T00:00:00.0000000000Z'],
    ['a point without digits', '2025-10-01T00:00:00.Z'],
    ['a comma', '2025-10-01T00:00:00,5Z'],
    ['a leap second', '2016-12-31T23:59:60Z'],
    ['minute 60', '2025-10-01T00:60:00Z'],
    ['hour 24', '2025-10-01T24:00:00Z'],
    ['29 February of a common year', '2025-02-29T00:00:00Z'],
    ['29 February of a century that is no leap year', '1900-02-29T00:00:00Z'],
    ['30 February', '2024-02-30T00:00:00Z'],
    ['31 April', '2025-04-31T00:00:00Z'],
    ['day 0', '2025-10-00T00:00:00Z'],
    ['month 0', '2025-00-01T00:00:00Z'],
    ['month 13', '2025-13-01T00:00:00Z'],
    ['a space for the T', '2025-10-01 00:00:00Z'],
    ['a date alone', '2025-10-01'],
    ['a year with a sign', '+002025-10-01T00:00:00Z'],
    ['digits of another script', '２025-10-01T00:00:00Z'],
    ['a newline at the end', '2025-10-01T00:00:00Z\n'],
    ['a space before', ' 2025-10-01T00:00:00Z'],
    ['nothing', ''],
  ])('has %s', (_, text) => {
    expect(parseTimestamp(text)).toBeUndefined();
  });
});

it('a timestamp is read as by the regular expression and the calendar of JavaScript, whatever the text', () => {
  const characters = fc.constantFrom(...'0123456789-:.TtZz+ \n', '\u0660', '\ud800');
  const nearly = fc
    .tuple(fc.integer({ min: 0, max: 4_000_000_000_000 }), fc.nat(9), fc.nat(30), characters)
    .map(([instant, decimals, at, stray]) => {
      const [seconds, milliseconds] = new Date(instant).toISOString().slice(0, -1).split('.');
      const text = `${seconds}${decimals === 0 ? '' : `.${`${milliseconds}789123`.slice(0, decimals)}`}Z`;
      return [text, text.slice(0, at) + stray + text.slice(at + 1), text.slice(0, at) + stray + text.slice(at)];
    });
  fc.assert(
    fc.property(fc.oneof(nearly, fc.array(fc.string({ unit: characters, maxLength: 32 }))), (texts) => {
      for (const text of texts) expect(parseTimestamp(text)).toBe(byRegularExpression(text));
    }),
    { numRuns: 2_000 },
  );
});

/** A definition, for the years that Date.parse knows without a sign; it cuts fractions as we do. */
function byRegularExpression(text: string): number | undefined {
  const [, second, fraction = ''] = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(?:Z|\+00:00)$/i.exec(text) ?? [];
  if (second === undefined) return undefined;
  const instant = Date.parse(`${second.toUpperCase()}Z`);
  // Date.parse rolls 30 February over to March, and 24:00:00 to the next day.
  if (Number.isNaN(instant) || new Date(instant).toISOString().slice(0, 19) !== second.toUpperCase()) return undefined;
  return instant + Number(fraction.padEnd(3, '0').slice(0, 3));
}

describe('a printed timestamp', () => {
  it.each([
    [OCTOBER, '2025-10-01T00:00:00Z'],
    [OCTOBER + 1, '2025-10-01T00:00:00.001Z'],
    [OCTOBER + 120, '2025-10-01T00:00:00.12Z'],
    [OCTOBER + 500, '2025-10-01T00:00:00.5Z'],
    [0, '1970-01-01T00:00:00Z'],
    [-1, '1969-12-31T23:59:59.999Z'],
  ])('%p is %s: a fraction only if it is not zero', (instant, text) => {
    expect(formatTimestamp(instant)).toBe(text);
  });

  it('reads back as the same instant', () => {
    fc.assert(
      fc.property(fc.integer({ min: Date.UTC(1970, 0), max: Date.UTC(2101, 0) }), (instant) => {
        expect(parseTimestamp(formatTimestamp(instant))).toBe(instant);
      }),
    );
  });
});
