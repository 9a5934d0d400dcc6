/**
 * The events of a body that is large, read while it arrives: of the text no more is kept than the event that has not ended yet.
 * The answers are those of `readEvents` for the whole text, but for bodies with several faults: here the first one counts.
 */
import type { IncomingHttpHeaders } from 'node:http';
import { parseJson } from '@meterline/catalog';
import { openCloudEvent } from './cloud-events.js';
import { asFound, type Format, type Found, readEvents } from './formats.js';
import { JsonScan } from './json-scan.js';
import { MAX_EVENTS, noEvents, notJson, tooManyEvents } from './limits.js';

export interface ArrivingEvents {
  /**
   * Takes the next piece of the text.
   * @returns the events that end in it
   * @throws ApiError `invalid_body`, `too_many_events`, `body_too_large`
   */
  push(text: string): readonly Found[];
  /** Ends the text. @returns what {@link push} could not know to have ended @throws as it */
  end(): readonly Found[];
}

/** What comes before the text, of which nothing is to be found again. */
export interface Begun {
  readonly events: number;
  /** As {@link JsonScan} counts them. */
  readonly values: number;
}

const NOTHING: Begun = { events: 0, values: 0 };

const FIRST_CHARACTER = /[^ \t\r\n]/;

/**
 * @param start the first piece of the text, which is still to be pushed
 * @param headers of a CloudEvent in binary mode
 * @param begun of lines, or of an array of events: if there are any, the text begins after the comma behind the last one
 */
export function arrivingEvents(
  start: string,
  format: Format,
  account: string,
  headers: IncomingHttpHeaders,
  begun = NOTHING,
): ArrivingEvents {
  if (format === 'ndjson') return new ArrivingLines(begun);
  if (begun.events > 0) return new ArrivingElements(asFound, begun);
  const isArray = start.charAt(start.search(FIRST_CHARACTER)) === '[';
  if (isArray && format === 'json') return new ArrivingElements(asFound);
  if (isArray && format === 'cloudEventBatch') return new ArrivingElements((item) => openCloudEvent(item, account));
  return new WholeText((text) => readEvents(text, format, account, headers));
}

class ArrivingLines implements ArrivingEvents {
  readonly #scan: JsonScan;
  /** The line that has not ended yet. */
  #rest = '';
  #events: number;

  constructor({ events, values }: Begun) {
    this.#scan = new JsonScan(0, values);
    this.#events = events;
  }

  push(text: string): readonly Found[] {
    const known = this.#rest + text;
    this.#scan.scan(known, this.#rest.length, true);
    const lines = known.split('\n');
    this.#rest = lines.pop() ?? '';
    return this.#found(lines);
  }

  end(): readonly Found[] {
    const found = this.#found([this.#rest]);
    if (this.#events === 0) throw noEvents();
    return found;
  }

  /** Empty lines are nothing. */
  #found(lines: readonly string[]): readonly Found[] {
    const filled = lines.filter((line) => line.trim() !== '');
    this.#events += filled.length;
    if (this.#events > MAX_EVENTS) throw tooManyEvents();
    return filled.map((line) => asFound(parseJson(line)));
  }
}

/** The elements of an array. Those that end in one piece are parsed together, which takes half the time of one by one. */
class ArrivingElements implements ArrivingEvents {
  readonly #open: (element: unknown) => Found;
  readonly #scan: JsonScan;
  /** From the last comma between two elements on. */
  #rest: string;
  #isBegun: boolean;
  #events: number;
  #isOver = false;

  constructor(open: (element: unknown) => Found, { events, values } = NOTHING) {
    this.#open = open;
    this.#isBegun = events > 0;
    this.#rest = this.#isBegun ? ',' : '';
    this.#scan = new JsonScan(this.#isBegun ? 1 : 0, values);
    this.#events = events;
  }

  push(text: string): readonly Found[] {
    if (this.#isOver) {
      if (FIRST_CHARACTER.test(text)) throw notJson();
      return [];
    }
    const known = this.#rest + text;
    this.#scan.scan(known, this.#rest.length);
    const { end, lastComma } = this.#scan;
    this.#isOver = end !== -1;
    if (this.#isOver && known.charAt(end) !== ']') throw notJson();
    const parsedUntil = this.#isOver ? end : lastComma;
    if (parsedUntil === -1) {
      this.#rest = known;
      return [];
    }
    // It begins with the bracket of the array, or with the comma after the last element.
    const begins = this.#isBegun ? 1 : known.search(FIRST_CHARACTER) + 1;
    const found = this.#found(known.slice(begins, parsedUntil));
    this.#isBegun = true;
    this.#rest = known.slice(parsedUntil);
    if (this.#isOver && FIRST_CHARACTER.test(this.#rest.slice(1))) throw notJson();
    return found;
  }

  end(): readonly Found[] {
    if (!this.#isOver) throw notJson();
    if (this.#events === 0) throw noEvents();
    return [];
  }

  #found(text: string): readonly Found[] {
    const elements = parseJson(`[${text}]`);
    if (!Array.isArray(elements)) throw notJson();
    // Nothing stands before a comma, or after one.
    if (elements.length === 0 && (this.#isBegun || !this.#isOver)) throw notJson();
    this.#events += elements.length;
    if (this.#events > MAX_EVENTS) throw tooManyEvents();
    return elements.map(this.#open);
  }
}

/** What is no list of events is read as a whole. */
class WholeText implements ArrivingEvents {
  readonly #read: (text: string) => readonly Found[];
  #text = '';

  constructor(read: (text: string) => readonly Found[]) {
    this.#read = read;
  }

  push(text: string): readonly Found[] {
    this.#text += text;
    return [];
  }

  end(): readonly Found[] {
    return this.#read(this.#text);
  }
}
