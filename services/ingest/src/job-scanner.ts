/**
 * The way of a job that is as producers write it: from its bytes straight into the rows of an insert (docs/decisions/0034). It says yes, or
 * nothing: a job with anything in it that `EventScanner` does not read is parsed, and its events take the ways of `intake.ts`. A property
 * test holds all of them to the same rows.
 */
import { costOfInteger, type EpochMs, MAX_EVENTS_PER_JOB, type PriceBook } from '@meterline/catalog';
import { EventScanner, FIELD, isNoText } from '@meterline/catalog/bytes';
import { EventRows } from '@meterline/warehouse';
import { NameBytes } from './name-bytes.js';

const QUOTE = 0x22;
const COMMA = 0x2c;

const NOTHING = Buffer.alloc(0);
const BEFORE_EVENTS = Buffer.from('{"events":[');
const AFTER_EVENTS = Buffer.from(']}');
/** The least that the fields that must be there take. */
const LEAST_EVENT_BYTES = 200;

export class JobScanner extends EventScanner<Buffer> {
  readonly #version: number;
  #nameBytes: NameBytes;
  /** By field, the number of its name. */
  readonly #number = new Int32Array(Object.keys(FIELD).length);

  /** @param names to begin with */
  constructor(book: PriceBook, names: NameBytes) {
    super(book, NOTHING);
    this.#version = book.version;
    this.#nameBytes = names;
  }

  /** @returns undefined when an event is unusual, or the job is none */
  rowsOf(data: Buffer, now: EpochMs, names: NameBytes): EventRows | undefined {
    this.open(data);
    this.#nameBytes = names;
    const rows = this.#rows(data, now);
    this.close();
    return this.at === data.length ? rows : undefined;
  }

  #rows(data: Buffer, now: EpochMs): EventRows | undefined {
    const isList = this.skip(BEFORE_EVENTS);
    const most = isList ? Math.min(MAX_EVENTS_PER_JOB, Math.ceil(data.length / LEAST_EVENT_BYTES)) : 1;
    const rows = new EventRows(most, this.#nameBytes.names);
    do {
      if (rows.length === most || !this.#addEvent(rows, data, now)) return undefined;
    } while (isList && this.skipByte(COMMA));
    return !isList || this.skip(AFTER_EVENTS) ? rows : undefined;
  }

  #addEvent(rows: EventRows, data: Buffer, now: EpochMs): boolean {
    const fields = this.readEvent(now);
    const cost = fields === 0 || !this.price ? undefined : costOfInteger(this.usage, this.price);
    if (cost === undefined) return false;
    const number = this.#number;
    const event = {
      accountId: number[FIELD.accountId] ?? 0,
      workspace: number[FIELD.workspace] ?? 0,
      resourceType: number[FIELD.resourceType] ?? 0,
      resourceName: number[FIELD.resourceName] ?? 0,
      resourceUuid: fields & (1 << FIELD.resourceUuid) ? (number[FIELD.resourceUuid] ?? 0) : 0,
      billingDimension: number[FIELD.billingDimension] ?? 0,
      usage: this.usage,
      timestamp: this.timestamp,
      revision: this.revision,
      voided: this.voided,
      cost,
      priceRevision: 0,
      priceBook: this.#version,
    };
    return rows.addNumbered(event, rows.length, data, this.from[FIELD.eventId]);
  }

  protected override nameOf(field: number): string {
    return this.#nameBytes.names.textOf(this.#number[field] ?? 0);
  }

  protected override readName(field: number, data: Buffer, from: number): number {
    let hash = 0;
    let at = from;
    for (let byte = data[at]; byte !== QUOTE; byte = data[at]) {
      if (byte === undefined || isNoText(byte)) return -1;
      hash = NameBytes.hashed(hash, byte);
      at += 1;
    }
    const number = this.#nameBytes.numberOf(data, from, at, hash);
    this.#number[field] = number;
    return number !== 0 || (field === FIELD.resourceUuid && at === from) ? at : -1;
  }
}
