/**
 * The events that are not sent yet, in segments, oldest first. A segment is in memory, in a file of the spool, or in both.
 * Those that find no room in memory any more are in the spool alone, as are those of an earlier process; they are read when
 * their turn comes. Where an event cannot be spooled, memory alone keeps it.
 *
 * Events are numbered from 0 in the order in which they are added. It is also the order in which they are taken.
 */
import type { Spool } from './spool.js';
import type { SpoolFile } from './spool-file.js';

/** A segment of this size is sealed. A crash sends at most so much again, and what was on its way. */
const SEGMENT_BYTES = 1024 * 1024;

interface Segment {
  readonly file: SpoolFile | undefined;
  /** Undefined while they are in the file alone. In place of those that are taken there are empty texts. */
  texts: string[] | undefined;
  bytes: number;
  /** The numbers of its events, of those that are taken, and of those that are sent. */
  size: number;
  taken: number;
  sent: number;
  isDamaged: boolean;
}

/** Events that are sent together. */
export interface Batch {
  readonly texts: readonly string[];
  readonly bytes: number;
  /** The number of its first event. */
  readonly first: number;
  readonly segment: Segment;
}

export interface BatchLimits {
  readonly events: number;
  readonly bytes: number;
}

export class Backlog {
  readonly #memoryBytes: number;
  readonly #spool: Spool | undefined;
  /** Those that are not taken as a whole, oldest first, and the tail. */
  readonly #segments: Segment[] = [];
  /** The one that is appended to. */
  #tail: Segment | undefined;
  #usedBytes = 0;
  #waitingBytes = 0;
  #added = 0;
  #taken = 0;
  #sent = 0;

  constructor(memoryBytes: number, spool: Spool | undefined) {
    this.#memoryBytes = memoryBytes;
    this.#spool = spool;
    for (const { file, events } of spool?.recovered ?? []) {
      this.#added += events;
      if (events > 0) this.#segments.push({ ...emptySegment(file, undefined), size: events });
      else file.remove();
    }
  }

  /** How many events were added so far; the number of the next one. */
  get added(): number {
    return this.#added;
  }

  /** The number of the first event that is not taken. */
  get taken(): number {
    return this.#taken;
  }

  get unsent(): number {
    return this.#added - this.#sent;
  }

  /** Of the events in memory that are not taken. */
  get waitingBytes(): number {
    return this.#waitingBytes;
  }

  /** @returns where the event is kept now; `full`: it has found no room */
  add(text: string): 'memory' | 'spool' | 'full' {
    const bytes = Buffer.byteLength(text);
    const segment = this.#spooled(text, bytes) ?? this.#remembered(bytes);
    if (segment === undefined) return 'full';
    segment.size += 1;
    segment.bytes += bytes;
    this.#added += 1;
    if (segment.texts) this.#remember(segment.texts, text, bytes);
    return segment.file ? 'spool' : 'memory';
  }

  /** The next events; undefined when there are none, or a file cannot be read, which is reported. One call at a time. */
  async take(limits: BatchLimits): Promise<Batch | undefined> {
    for (;;) {
      const [head] = this.#segments;
      if (head === undefined) return undefined;
      if (head.taken < head.size) {
        const texts = head.texts ?? (await this.#load(head));
        if (texts.length > 0) return this.#cut(head, texts, limits);
      } else {
        if (head === this.#tail) return undefined;
        this.#segments.shift();
      }
    }
  }

  /** The events of the batch are sent. */
  settle({ segment, texts, bytes }: Batch): void {
    this.#usedBytes -= bytes;
    this.#sent += texts.length;
    segment.sent += texts.length;
    if (segment.sent < segment.size) return;
    if (segment === this.#tail) this.#clear(segment);
    else this.#finish(segment);
  }

  /** Nothing more is added. Files whose events are all sent are removed, the others stay for the next start. */
  close(): void {
    this.#seal();
  }

  /** The segment to whose file the event is written; undefined when it cannot be. */
  #spooled(text: string, bytes: number): Segment | undefined {
    if (!this.#spool?.takes(bytes + 1)) return undefined;
    if (!this.#tail?.file || this.#tail.bytes + bytes > SEGMENT_BYTES) {
      const file = this.#spool.create();
      if (file === undefined) return undefined;
      const fits = this.#usedBytes + SEGMENT_BYTES <= this.#memoryBytes;
      this.#begin(emptySegment(file, fits ? [] : undefined));
    }
    if (this.#tail?.file?.append(text, bytes)) return this.#tail;
    this.#seal();
    return undefined;
  }

  /** The segment that keeps the event in memory alone; undefined when there is no room. */
  #remembered(bytes: number): Segment | undefined {
    if (this.#usedBytes + bytes > this.#memoryBytes) return undefined;
    const fits = this.#tail && !this.#tail.file && this.#tail.bytes + bytes <= SEGMENT_BYTES;
    return fits ? this.#tail : this.#begin(emptySegment(undefined, []));
  }

  #remember(texts: string[], text: string, bytes: number): void {
    texts.push(text);
    this.#usedBytes += bytes;
    this.#waitingBytes += bytes;
  }

  #begin(segment: Segment): Segment {
    this.#seal();
    this.#tail = segment;
    this.#segments.push(segment);
    return segment;
  }

  #seal(): void {
    const tail = this.#tail;
    this.#tail = undefined;
    if (tail === undefined) return;
    if (tail.file) this.#spool?.seal(tail.file);
    if (tail.sent === tail.size) this.#finish(tail);
  }

  /** All that is in it is sent, and more will be appended. */
  #clear(segment: Segment): void {
    segment.file?.empty();
    Object.assign(segment, emptySegment(segment.file, segment.texts && []));
  }

  #finish(segment: Segment): void {
    const at = this.#segments.indexOf(segment);
    if (at !== -1) this.#segments.splice(at, 1);
    if (segment.isDamaged) void segment.file?.setAside();
    else segment.file?.remove();
  }

  #cut(segment: Segment, all: string[], limits: BatchLimits): Batch {
    const first = segment.taken;
    let end = first;
    let bytes = 0;
    for (let text = all[end]; text !== undefined && end - first < limits.events; text = all[end]) {
      const more = Buffer.byteLength(text);
      if (end > first && bytes + more > limits.bytes) break;
      bytes += more;
      end += 1;
    }
    const batch = { texts: all.slice(first, end), bytes, first: this.#taken, segment };
    all.fill('', first, end);
    segment.taken = end;
    this.#taken += end - first;
    this.#waitingBytes -= bytes;
    return batch;
  }

  /** Reads the events of a segment that is in the spool alone. A file of which some cannot be read is left aside. */
  async #load(segment: Segment): Promise<string[]> {
    if (segment === this.#tail) this.#seal();
    const lines = (await this.#spool?.load(segment.file, segment.size)) ?? [];
    const texts: string[] = [];
    segment.texts = texts;
    for (const line of lines) this.#remember(texts, line, Buffer.byteLength(line));
    const unreadable = segment.size - texts.length;
    segment.isDamaged = unreadable > 0;
    this.#taken += unreadable;
    this.#sent += unreadable;
    segment.size = texts.length;
    if (texts.length === 0) this.#finish(segment);
    return texts;
  }
}

function emptySegment(file: SpoolFile | undefined, texts: string[] | undefined): Segment {
  return { file, texts, bytes: 0, size: 0, taken: 0, sent: 0, isDamaged: false };
}
