/**
 * From the bytes of a body to what becomes of its events. Those that are as producers write them are taken from the bytes; with the first
 * one that is not, the rest of a large body goes the way of `arriving-events.ts`, and a small one as a whole that of `formats.ts`.
 */
import type { IncomingHttpHeaders } from 'node:http';
import { type ArrivingEvents, arrivingEvents } from './arriving-events.js';
import { CheckedEvents, type CheckRules } from './check.js';
import { TextPieces, textOf } from './decoding.js';
import { type Format, type Found, readEvents } from './formats.js';
import { ARRAY, ARRAY_IN_OBJECT, LINES, ONE, type Shape, type UsualEvents } from './usual-events.js';

export interface BodyRules {
  readonly format: Format;
  readonly headers: IncomingHttpHeaders;
  /** Undefined: nothing is taken from the bytes, which changes no answer. */
  readonly usual: UsualEvents | undefined;
  /** Asked for each piece. */
  readonly check: () => CheckRules;
}

/** By how it begins. */
const SHAPES: readonly (readonly [opening: Buffer, shape: Shape])[] = [
  [Buffer.from('['), ARRAY],
  [Buffer.from('{"events":['), ARRAY_IN_OBJECT],
  [Buffer.from('{'), ONE],
];

/** @throws ApiError as `readEvents` does */
export function checkWhole(body: Buffer, { format, headers, usual, check }: BodyRules): CheckedEvents {
  const rules = check();
  const taken = new CheckedEvents();
  const shape = format === 'json' ? shapeOf(body) : format === 'ndjson' ? ([0, LINES] as const) : undefined;
  if (shape && usual?.take(body, ...shape, true, rules, taken).isAll) return taken;
  const checked = new CheckedEvents();
  checked.add(readEvents(textOf(body), format, rules.account, headers), rules);
  return checked;
}

/** @returns where its first event begins, and how they are written */
function shapeOf(body: Buffer): readonly [number, Shape] | undefined {
  const found = SHAPES.find(([opening]) => body.subarray(0, opening.length).equals(opening));
  return found && [found[1] === ONE ? 0 : found[0].length, found[1]];
}

/** Longer than any usual event. */
const MOST_EVENT_BYTES = 8 * 1024;
const OPENING_BRACKET = 0x5b;
const NOTHING = Buffer.alloc(0);

/** A body piece by piece, whatever its length. */
export class ArrivingBody {
  readonly checked = new CheckedEvents();
  readonly #rules: BodyRules;
  readonly #shape: Shape;
  /** Undefined: what comes now is read as text. */
  #usual: UsualEvents | undefined;
  /** From the first event on that was not taken; of an array, from what stands before it. */
  #rest: Buffer = NOTHING;
  #events = 0;
  #fields = 0;
  #texts: TextPieces | undefined;
  #arriving: ArrivingEvents | undefined;

  constructor(rules: BodyRules) {
    const { format, usual } = rules;
    this.#rules = rules;
    this.#shape = format === 'ndjson' ? LINES : ARRAY;
    this.#usual = format === 'ndjson' || format === 'json' ? usual : undefined;
  }

  /** @throws ApiError as `arrivingEvents` does */
  push(piece: Buffer): void {
    if (!this.#usual) {
      this.#read(piece);
      return;
    }
    this.#take(this.#usual, this.#rest.length === 0 ? piece : Buffer.concat([this.#rest, piece]), false);
    if (this.#rest.length > MOST_EVENT_BYTES) this.#readRest();
    // The piece itself is not kept.
    else this.#rest = Buffer.from(this.#rest);
  }

  /** @throws as {@link push} */
  end(): void {
    if (this.#usual) {
      if (this.#take(this.#usual, this.#rest, true)) return;
      this.#readRest();
    }
    this.#texts?.end();
    this.#check(this.#arriving?.end() ?? []);
  }

  /** @returns whether nothing is left that means anything */
  #take(usual: UsualEvents, bytes: Buffer, isEnd: boolean): boolean {
    this.#rest = bytes;
    const before = this.#shape === LINES ? 0 : 1;
    if (before === 1 && this.#events === 0 && bytes[0] !== OPENING_BRACKET) return false;
    const taken = usual.take(bytes, before, this.#shape, isEnd, this.#rules.check(), this.checked);
    this.#rest = bytes.subarray(taken.end - before);
    this.#events += taken.events;
    this.#fields += taken.fields;
    return taken.isAll;
  }

  #readRest(): void {
    // Without the comma that is behind what was taken.
    const rest = this.#shape === ARRAY && this.#events > 0 ? this.#rest.subarray(1) : this.#rest;
    this.#usual = undefined;
    this.#rest = NOTHING;
    this.#read(rest);
  }

  #read(bytes: Buffer): void {
    this.#texts ??= new TextPieces(this.#events > 0);
    const text = this.#texts.push(bytes);
    this.#arriving ??= this.#arrivingAfter(text);
    this.#check(this.#arriving.push(text));
  }

  #arrivingAfter(text: string): ArrivingEvents {
    const { check, format, headers } = this.#rules;
    const events = this.#events;
    // A brace or a comma for each field; of an array, its bracket and a comma for each event.
    const values = this.#fields + (this.#shape === LINES || events === 0 ? 0 : events + 1);
    return arrivingEvents(text, format, check().account, headers, { events, values });
  }

  #check(found: readonly Found[]): void {
    this.checked.add(found, this.#rules.check());
  }
}
