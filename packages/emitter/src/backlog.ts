/**
 * The events that are not sent yet, in segments, oldest first. A segment is in memory, in a file of the spool, or in both.
 * Segments that find no room in memory any more are in the spool alone, as are those of an earlier process; they are read when
 * their turn comes. Where an event cannot be spooled, memory alone keeps it.
 *
 * Events are numbered from 0 in the order in which they are added. It is also the order in which they are taken.
 */
import type { Spool, SpoolFile } from './spool.js';

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

export type Backlog = ReturnType<typeof openBacklog>;

/** Begins with what the spool has of earlier processes. */
export function openBacklog(memoryBytes: number, spool: Spool | undefined) {
  /** Segments that are not taken as a whole, oldest first, and the tail. */
  const segments: Segment[] = [];
  /** The segment that is appended to. */
  let tail: Segment | undefined;
  let usedBytes = 0;
  let added = 0;
  let taken = 0;
  let sent = 0;
  for (const { file, events } of spool?.recovered ?? []) {
    added += events;
    if (events > 0) segments.push({ ...emptySegment(file, undefined), size: events });
    else file.finish(false);
  }

  /** The segment to whose file the event is written; undefined when it cannot be. */
  function spooled(text: string, bytes: number): Segment | undefined {
    if (!spool?.takes(bytes + 1)) return undefined;
    if (!tail?.file || tail.bytes + bytes > SEGMENT_BYTES) {
      const file = spool.create();
      if (!file) return undefined;
      begin(emptySegment(file, usedBytes + SEGMENT_BYTES <= memoryBytes ? [] : undefined));
    }
    if (tail?.file?.append(text, bytes)) return tail;
    seal();
    return undefined;
  }

  /** The segment that keeps the event in memory alone; undefined when there is no room. What a file has, too, gives way. */
  function remembered(bytes: number): Segment | undefined {
    while (usedBytes + bytes > memoryBytes) {
      const copy = segments.findLast((each, index) => index > 0 && each.file && each.texts && each !== tail);
      if (!copy) return undefined;
      copy.texts = undefined;
      usedBytes -= copy.bytes;
    }
    const fits = tail && !tail.file && tail.bytes + bytes <= SEGMENT_BYTES;
    return fits ? tail : begin(emptySegment(undefined, []));
  }

  function begin(segment: Segment): Segment {
    seal();
    tail = segment;
    segments.push(segment);
    return segment;
  }

  function seal(): void {
    const sealed = tail;
    tail = undefined;
    if (!sealed) return;
    sealed.file?.seal();
    if (sealed.sent === sealed.size) finish(sealed);
  }

  /** All that is in it is sent, and more will be appended. */
  function clear(segment: Segment): void {
    segment.file?.empty();
    Object.assign(segment, emptySegment(segment.file, segment.texts && []));
  }

  function finish(segment: Segment): void {
    const at = segments.indexOf(segment);
    if (at !== -1) segments.splice(at, 1);
    segment.file?.finish(segment.isDamaged);
  }

  function cut(segment: Segment, all: string[], mostEvents: number, mostBytes: number): Batch {
    const from = segment.taken;
    let end = from;
    let bytes = 0;
    for (let text = all[end]; text !== undefined && end - from < mostEvents; text = all[end]) {
      const more = Buffer.byteLength(text);
      if (end > from && bytes + more > mostBytes) break;
      bytes += more;
      end += 1;
    }
    const batch = { texts: all.slice(from, end), bytes, first: taken, segment };
    all.fill('', from, end);
    segment.taken = end;
    taken += end - from;
    return batch;
  }

  /** Reads the events of a segment that is in the spool alone. A file of which some cannot be read is left aside. */
  async function load(segment: Segment): Promise<string[]> {
    if (segment === tail) seal();
    const texts = (await spool?.load(segment.file, segment.size)) ?? [];
    segment.texts = texts;
    for (const line of texts) usedBytes += Buffer.byteLength(line);
    const unreadable = segment.size - texts.length;
    segment.isDamaged = unreadable > 0;
    taken += unreadable;
    sent += unreadable;
    segment.size = texts.length;
    if (texts.length === 0) finish(segment);
    return texts;
  }

  return {
    /** Events added so far; the number of the next one. */
    get added() {
      return added;
    },
    /** The number of the first event that is not taken. */
    get taken() {
      return taken;
    },
    get unsent() {
      return added - sent;
    },
    /** The bytes of the events in memory, including taken ones. */
    get usedBytes() {
      return usedBytes;
    },
    /** @returns where the event is kept now; `full`: it has found no room */
    add: (text: string): 'memory' | 'spool' | 'full' => {
      const bytes = Buffer.byteLength(text);
      const segment = spooled(text, bytes) ?? remembered(bytes);
      if (!segment) return 'full';
      segment.size += 1;
      segment.bytes += bytes;
      added += 1;
      if (segment.texts?.push(text)) usedBytes += bytes;
      return segment.file ? 'spool' : 'memory';
    },
    /**
     * The next events; undefined when there are none, or a file cannot be read, which is reported. One call at a time.
     * @param mostBytes a single event may have more
     */
    take: async (mostEvents: number, mostBytes: number): Promise<Batch | undefined> => {
      for (;;) {
        const [head] = segments;
        if (!head) return undefined;
        if (head.taken < head.size) {
          const texts = head.texts ?? (await load(head));
          if (texts.length > 0) return cut(head, texts, mostEvents, mostBytes);
        } else {
          if (head === tail) return undefined;
          segments.shift();
        }
      }
    },
    /** The events of the batch are sent. */
    settle: ({ segment, texts, bytes }: Batch) => {
      usedBytes -= bytes;
      sent += texts.length;
      segment.sent += texts.length;
      if (segment.sent < segment.size) return;
      if (segment === tail) clear(segment);
      else finish(segment);
    },
    /** Nothing more is added. Files whose events are all sent are removed, the others stay for the next start. */
    close: seal,
  };
}

function emptySegment(file: SpoolFile | undefined, texts: string[] | undefined): Segment {
  return { file, texts, bytes: 0, size: 0, taken: 0, sent: 0, isDamaged: false };
}
