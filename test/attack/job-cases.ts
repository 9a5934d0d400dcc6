/** Makes jobs: events that fit, that nearly fit, hostile ones, and data that is no job at all. */
import { BILLING_DIMENSIONS, DIMENSIONS, RESOURCE_TYPES } from '@meterline/catalog';
import type { JobsOptions } from 'bullmq';
import type { SeededRandom } from '../faults/seeded-random.js';
import { HOSTILE_TEXTS } from './hostile-text.js';

const HOUR = 3_600_000;
const MINUTE = 60_000;
const NAMES = [
  'main',
  'box',
  'ünï',
  '名前',
  '😀'.repeat(256),
  'a'.repeat(256),
  ' ',
  "'",
  '\\',
  '\u2028',
  '\u202e',
  '\ufffd',
  '{x: String}',
  '__proto__',
];
const USAGES: readonly unknown[] = [
  0,
  -0,
  1,
  0.1 + 0.2,
  1e-9,
  1e-10,
  5e-10,
  1.5e-9,
  1e14,
  999_999_999_999_999,
  1e15,
  1e21,
  -1,
  -1e-20,
  5e-324,
  1.7976931348623157e308,
  '0',
  '00',
  '1.',
  '.5',
  '1.000000000',
  '999999999999999.9999999994',
  '999999999999999.9999999999',
  '1000000000000000',
  '0.0000000005',
  '0.0000000015',
  '1e3',
  '-0',
  '+1',
  ' 1',
  '1,5',
  '٣',
  'NaN',
  'Infinity',
  '',
  `1${'0'.repeat(400)}`,
  `0.${'0'.repeat(5_000)}1`,
  null,
  true,
  {},
  [1],
  { valueOf: 1 },
];
const TIMESTAMPS: readonly unknown[] = [
  '1970-01-01T00:00:00Z',
  '1969-12-31T23:59:59.999Z',
  '1970-01-01T00:59:59.999999999Z',
  '2024-02-29T12:00:00Z',
  '2025-02-29T12:00:00Z',
  '2025-10-01T00:00:00+00:00',
  '2025-10-01T00:00:00-00:00',
  '2025-10-01T00:00:00+01:00',
  '2025-10-01T24:00:00Z',
  '2025-10-01T23:59:60Z',
  '2025-10-01t00:00:00z',
  '2025-10-01 00:00:00Z',
  '2025-10-01',
  '2025-10-01T00:00:00',
  '2025-10-01T00:00:00.Z',
  '2025-10-01T00:00:00.1234567890Z',
  '2025-13-01T00:00:00Z',
  '9999-12-31T23:59:59Z',
  '2299-01-01T00:00:00Z',
  '-000001-01-01T00:00:00Z',
  '+012025-10-01T00:00:00Z',
  '',
  0,
  1_759_276_800_000,
  null,
  {},
];
const REVISIONS: readonly unknown[] = [0, -0, 1, 65_535, 65_536, -1, 1.5, 1e300, '1', null, true, [], 2 ** 53];
const VOIDS: readonly unknown[] = [true, false, 0, 1, 'true', null, {}];
const EVENT_IDS: readonly unknown[] = [
  '00000000-0000-0000-0000-000000000000',
  'FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF',
  '0190c5e4-7b1a-7def-8abc-0123456789a',
  '0190c5e47b1a7def8abc0123456789ab',
  '{0190c5e4-7b1a-7def-8abc-0123456789ab}',
  '0190c5e4-7b1a-7def-8abc-0123456789ab\n',
  'g190c5e4-7b1a-7def-8abc-0123456789ab',
  '',
  7,
  null,
];
const STRANGERS: readonly unknown[] = [null, true, 0, '', 'event', [], [[]], {}, [{}], { events: [] }];

type Event = Record<string, unknown>;

/** A stream of jobs that share identities, so that copies, revisions and voids of an event meet. */
export class JobMaker {
  readonly #random: SeededRandom;
  readonly #accounts: readonly string[];
  readonly #now: number;
  readonly #sent: Event[] = [];

  constructor(random: SeededRandom, { accounts, now }: { accounts: readonly string[]; now: number }) {
    this.#random = random;
    this.#accounts = accounts;
    this.#now = now;
  }

  /** The data of a job with about this many events; may be anything that JSON can write. */
  data(events: number): unknown {
    const random = this.#random;
    const shape = random.integer(1, 40);
    if (shape === 1) return random.pick(STRANGERS);
    if (shape === 2) return { events: random.pick<unknown>([null, {}, 'x', 7, { 0: this.#event() }]) };
    if (shape === 3) return { events: [this.#event()], [random.pick(['source', '__proto', 'Events'])]: 1 };
    if (shape === 4) return [this.#event()];
    if (shape <= 12) return this.#event();
    return { events: Array.from({ length: events }, () => this.#item()) };
  }

  /** Options that a producer may set, and that must change nothing. */
  options(n: number): JobsOptions {
    const random = this.#random;
    return random.pick<JobsOptions>([
      {},
      {},
      { priority: random.integer(1, 2_097_152) },
      { lifo: true },
      { delay: random.integer(0, 200) },
      { attempts: 3, backoff: 10 },
      { removeOnComplete: true },
      { removeOnComplete: false, removeOnFail: true },
      { removeOnComplete: { age: 1 } },
      { jobId: `own-${n}-${random.pick(['x', 'ü', ' ', '{}', '"', '😀'])}` },
      { timestamp: random.pick([0, 1, -1, 8_640_000_000_000_000, 1.5]) },
      { keepLogs: 0, sizeLimit: 100_000_000 },
    ]);
  }

  #item(): unknown {
    if (this.#random.chance(0.02)) return this.#random.pick(STRANGERS);
    return this.#event();
  }

  #event(): Event {
    const random = this.#random;
    const event = this.#sent.length > 0 && random.chance(0.3) ? this.#again() : this.fresh();
    if (this.#sent.length < 5_000 || random.chance(0.1)) this.#sent.push(event);
    return random.chance(0.35) ? this.#spoiled(event) : event;
  }

  /** An event that fits. */
  fresh(): Event {
    const random = this.#random;
    return {
      eventId: random.uuid(),
      accountId: random.pick(this.#accounts),
      ...this.#content(),
      timestamp: new Date(this.#now - random.integer(-9 * MINUTE, 60 * 24 * HOUR)).toISOString(),
    };
  }

  #content(): Event {
    const random = this.#random;
    const billingDimension = random.pick(BILLING_DIMENSIONS);
    const { resourceType, unit } = DIMENSIONS[billingDimension];
    const whole = random.integer(0, 1_000_000);
    return {
      workspace: random.pick(NAMES),
      resourceType,
      resourceName: random.pick(NAMES),
      ...(random.chance(0.7) && { resourceUuid: random.pick(NAMES) }),
      billingDimension,
      usage:
        unit === 'count'
          ? whole
          : random.pick<unknown>([whole, whole / 1_000, `${whole}.${random.integer(0, 999_999_999)}`]),
    };
  }

  /** The same event once more: as it was, as a later revision, or voided. */
  #again(): Event {
    const random = this.#random;
    const before = random.pick(this.#sent);
    if (random.chance(0.4)) return { ...before };
    const revision = random.integer(0, 5);
    if (random.chance(0.3)) return { ...before, revision, void: true };
    return { ...before, ...this.#content(), revision };
  }

  #spoiled(event: Event): Event {
    const random = this.#random;
    const spoilt = { ...event };
    for (let changes = random.integer(1, 2); changes > 0; changes -= 1) {
      const field = random.pick(FIELDS);
      if (random.chance(0.1)) delete spoilt[field];
      else spoilt[field] = random.pick(VALUES[field]);
    }
    if (random.chance(0.1))
      spoilt[random.pick(['label', 'EventId', '', ' usage', 'constructor', 'cost'])] = random.pick(STRANGERS);
    return spoilt;
  }
}

const TEXTS: readonly unknown[] = [...HOSTILE_TEXTS, '\ud800', 'a\udfff', 7, null, false, ['main'], { name: 'main' }];
const VALUES = {
  eventId: EVENT_IDS,
  workspace: TEXTS,
  resourceType: [...RESOURCE_TYPES, 'Sandbox', 'constructor', '', null, 7],
  resourceName: TEXTS,
  resourceUuid: TEXTS,
  billingDimension: [...BILLING_DIMENSIONS, 'toString', '__proto__', '', null],
  usage: USAGES,
  timestamp: TIMESTAMPS,
  revision: REVISIONS,
  void: VOIDS,
} satisfies Record<string, readonly unknown[]>;
type Field = keyof typeof VALUES;
const FIELDS = Object.keys(VALUES).filter((name): name is Field => name in VALUES);

/** Data that no JSON writer gives, put into Redis by hand: an object for each job, as text or bytes. */
export function rawData(event: Event): readonly (string | Buffer)[] {
  const text = JSON.stringify(event);
  const inserted = (member: string) => text.replace('{', `{${member},`);
  return [
    '',
    ' ',
    'null',
    '{',
    text.slice(0, -1),
    `${text}x`,
    `\ufeff${text}`,
    ` \n${text}\t`,
    inserted('"usage":1e400'),
    inserted('"__proto__":{"usage":1}'),
    inserted('"eventId":"x"'),
    text.replace(/"usage":[^,]+/, '"usage":1e400'),
    text.replace(/"usage":[^,]+/, '"usage":-0'),
    text.replace(/"usage":[^,]+/, '"usage":0.1000000000000000055511151231257827'),
    text.replace(/"usage":[^,]+/, '"usage":01'),
    text.replace(/"usage":[^,]+/, '"usage":NaN'),
    Buffer.from(text.replace(/"workspace":"[^"]*"/, '"workspace":"\xff\xfe"'), 'latin1'),
    Buffer.from(text.replace(/"workspace":"[^"]*"/, '"workspace":"\xc0\x80"'), 'latin1'),
    text.replace(/"workspace":"[^"]*"/, '"workspace":"\\ud800"'),
    `${'['.repeat(100_000)}${']'.repeat(100_000)}`,
    `{"events":[${text},${'{"a":'.repeat(20_000)}1${'}'.repeat(20_000)}]}`,
    `{"events":[${text}],"events":[]}`,
    `{"events":[${Array(5_000).fill('{}').join(',')}]}`,
    `{"events":[${Array(5_001).fill(text).join(',')}]}`,
  ];
}
