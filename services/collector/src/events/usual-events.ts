/**
 * Events as producers write them, taken from the bytes of a body into a job as they came, without JSON.parse and JSON.stringify. It says
 * yes, or nothing: what is unusual or wrong is left to `check.ts`. A property test holds both to the same answer and the same events.
 */
import { isName, type PriceBook } from '@meterline/catalog';
import { EventScanner, FIELD, isNoText } from '@meterline/catalog/bytes';
import type { CheckedEvents, CheckRules } from './check.js';
import { MAX_EVENTS } from './limits.js';
import { ID_LENGTH } from './results.js';

const QUOTE = 0x22;
const HYPHEN = 0x2d;
const DELETE = 0x7f;
const MOST_ASCII = 256;
/** Stands in a text for bytes that are no UTF-8. */
const NOT_UTF8 = '\ufffd';
const NOTHING = Buffer.alloc(0);
const HYPHENS = [8, 13, 18, 23];
/** By byte. Ids in the queue are in lower case. */
const IS_DIGIT = new Uint8Array(256);
for (const digit of Buffer.from('0123456789abcdef')) IS_DIGIT[digit] = 1;
/** By byte: what may stand around JSON. */
const IS_SPACE = new Uint8Array(256);
for (const space of Buffer.from(' \t\r\n')) IS_SPACE[space] = 1;
/** Names that are compared with something; the others are only to be names. */
const COMPARED: ReadonlySet<number> = new Set([FIELD.accountId, FIELD.resourceType, FIELD.billingDimension]);

/** How the events of a body are written. */
export interface Shape {
  /** The byte between two events. */
  readonly separator: number;
  /** Stands behind the last one. */
  readonly closing: Buffer;
}

const COMMA = 0x2c;
const NEWLINE = 0x0a;
/** No byte. */
const NEVER = -1;
export const ARRAY: Shape = { separator: COMMA, closing: Buffer.from(']') };
export const ARRAY_IN_OBJECT: Shape = { separator: COMMA, closing: Buffer.from(']}') };
export const LINES: Shape = { separator: NEWLINE, closing: NOTHING };
export const ONE: Shape = { separator: NEVER, closing: NOTHING };

export interface Taken {
  /** Where the first event begins that was not taken. */
  end: number;
  events: number;
  /** Of all of them together. */
  fields: number;
  /** Whether nothing is left that means anything. */
  isAll: boolean;
}

/** It reads what it is given in one call, so one serves all bodies. */
export class UsualEvents extends EventScanner<Buffer> {
  /** By field, the name that was read last. */
  readonly #names: string[] = [];
  #account = '';

  constructor(book: PriceBook) {
    super(book, NOTHING, ['accountId']);
  }

  /**
   * Takes events up to the first that is unusual or wrong, is one too many, or has no separator behind it: it may not have ended.
   * @param data nobody writes to it any more: parts of it are kept
   * @param from where the first one begins
   * @param isEnd whether nothing follows the data: the last event may be closed instead
   */
  take(data: Buffer, from: number, shape: Shape, isEnd: boolean, rules: CheckRules, checked: CheckedEvents): Taken {
    const { account, now } = rules;
    const taken: Taken = { end: from, events: 0, fields: 0, isAll: false };
    if (!isName(account)) return taken;
    // Events that stand as a job has them become one text.
    let run = from;
    let inRun = 0;
    let lastEnd = from;
    const endRun = (to: number, ...more: readonly Buffer[]) => {
      checked.addAccepted(inRun, data.subarray(run, to), ...more);
      run = this.at;
      inRun = 0;
    };
    this.#account = account;
    this.open(data);
    this.at = from;
    while (checked.results.count < MAX_EVENTS && !taken.isAll) {
      const fields = this.readEvent(now);
      const id = this.from[FIELD.eventId] ?? 0;
      if (fields === 0 || !isUuid(data, id)) break;
      const ends = this.at;
      const isFollowed = this.skipByte(shape.separator);
      if (!isFollowed && !(isEnd && this.#isClosed(data, shape))) break;
      taken.isAll = !isFollowed || (isEnd && shape === LINES && this.at === data.length);
      taken.end = this.at;
      taken.events += 1;
      taken.fields += size(fields);
      checked.results.addAccepted(data, id);
      inRun += 1;
      if ((fields & (1 << FIELD.accountId)) === 0)
        endRun(ends - 1, Buffer.from(`,"accountId":${JSON.stringify(account)}}`));
      else if (shape === LINES) endRun(ends);
      lastEnd = ends;
    }
    if (inRun > 0) endRun(lastEnd);
    this.close();
    return taken;
  }

  /** Whether the last event is closed, and nothing is behind it. */
  #isClosed(data: Buffer, { closing }: Shape): boolean {
    if (!this.skip(closing)) return false;
    while (IS_SPACE[data[this.at] ?? 0]) this.at += 1;
    return this.at === data.length;
  }

  protected override nameOf(field: number): string {
    return field === FIELD.accountId ? this.#account : (this.#names[field] ?? '');
  }

  protected override readName(field: number, data: Buffer, from: number): number {
    let at = from;
    let isAscii = true;
    for (let byte = data[at]; byte !== QUOTE; byte = data[at]) {
      if (byte === undefined || isNoText(byte)) return -1;
      if (byte >= DELETE) isAscii = false;
      at += 1;
    }
    // An empty uuid is none.
    if (at === from) return field === FIELD.resourceUuid ? at : -1;
    const isCompared = COMPARED.has(field);
    if (isAscii && !isCompared) return at - from <= MOST_ASCII ? at : -1;
    const name = data.toString('utf8', from, at);
    if (name.includes(NOT_UTF8) || !isName(name)) return -1;
    if (field === FIELD.accountId && name !== this.#account) return -1;
    if (isCompared) this.#names[field] = name;
    return at;
  }
}

function isUuid(data: Buffer, from: number): boolean {
  for (const hyphen of HYPHENS) if (data[from + hyphen] !== HYPHEN) return false;
  let digits = 0;
  for (let at = from; at < from + ID_LENGTH; at += 1) digits += IS_DIGIT[data[at] ?? 0] ?? 0;
  return digits === ID_LENGTH - HYPHENS.length;
}

/** Of a set whose members are bits. */
function size(set: number): number {
  let members = 0;
  for (let rest = set; rest !== 0; rest &= rest - 1) members += 1;
  return members;
}
