/**
 * Queues unsent events in segments of about 1 MiB, oldest first. A segment is stored in memory, in a spool file, or in both.
 * Two kinds of segments are only in the spool: segments that do not fit into memory, and segments of earlier processes. They are loaded
 * when they reach the head of the queue. Events that cannot be written to the spool are stored only in memory.
 * Events are numbered from 0. They are taken in the order in which they were added.
 */
import type { Spool, SpoolFile } from './spool.js';

/** A segment of this size gets no more events. After a crash, at most the events of one segment and the events in flight are sent twice. */
const SEGMENT_BYTES = 1024 * 1024;

interface Segment {
  readonly file: SpoolFile | undefined;
  /** JSON of each event, or an empty string after the event was taken. Undefined if the events are only in the file. */
  texts: string[] | undefined;
  bytes: number;
  /** `size` counts all events of the segment. `taken` and `sent` count the events that were taken and sent. */
  size: number;
  taken: number;
  sent: number;
  isDamaged: boolean;
}

export interface Batch {
  readonly texts: readonly string[];
  readonly bytes: number;
  readonly first: number;
  readonly segment: Segment;
}

export type Backlog = ReturnType<typeof openBacklog>;

/** Creates a backlog that starts with the events that earlier processes left in the spool. */
export function openBacklog(memoryBytes: number, spool: Spool | undefined) {
  /** All segments with events that are not taken yet, oldest first, and the tail: the segment that new events are added to. */
  const segments: Segment[] = [];
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

  /** Writes the event to a spool file. Returns the segment of the file, or undefined if the write fails. */
  function appendToSpool(text: string, bytes: number): Segment | undefined {
    if (!spool?.accepts(bytes + 1)) return undefined;
    if (!tail?.file || tail.bytes + bytes > SEGMENT_BYTES) {
      const file = spool.create();
      if (!file) return undefined;
      begin(emptySegment(file, usedBytes + SEGMENT_BYTES <= memoryBytes ? [] : undefined));
    }
    if (tail?.file?.append(text, bytes)) return tail;
    seal();
    return undefined;
  }

  /** Returns a segment for an event that is only in memory. To make room, unloads segments that have a file. Undefined if memory is full. */
  function segmentInMemory(bytes: number): Segment | undefined {
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

  /** Empties the tail after all its events are sent, so that it can be reused. */
  function clear(segment: Segment): void {
    segment.file?.empty();
    Object.assign(segment, emptySegment(segment.file, segment.texts && []));
  }

  function finish(segment: Segment): void {
    const at = segments.indexOf(segment);
    if (at !== -1) segments.splice(at, 1);
    segment.file?.finish(segment.isDamaged);
  }

  function cut(segment: Segment, all: string[], maxEvents: number, maxBytes: number): Batch {
    const from = segment.taken;
    let end = from;
    let bytes = 0;
    for (let text = all[end]; text !== undefined && end - from < maxEvents; text = all[end]) {
      const more = Buffer.byteLength(text);
      if (end > from && bytes + more > maxBytes) break;
      bytes += more;
      end += 1;
    }
    const batch = { texts: all.slice(from, end), bytes, first: taken, segment };
    all.fill('', from, end);
    segment.taken = end;
    taken += end - from;
    return batch;
  }

  /** Loads a segment from its file. If some events cannot be read, marks the segment as damaged, which preserves the file. */
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
    get added() {
      return added;
    },
    get taken() {
      return taken;
    },
    get unsent() {
      return added - sent;
    },
    get usedBytes() {
      return usedBytes;
    },
    /** Adds an event. @returns where the event is stored, or `full` if the backlog has no room for it */
    add: (text: string): 'memory' | 'spool' | 'full' => {
      const bytes = Buffer.byteLength(text);
      const segment = appendToSpool(text, bytes) ?? segmentInMemory(bytes);
      if (!segment) return 'full';
      segment.size += 1;
      segment.bytes += bytes;
      added += 1;
      if (segment.texts?.push(text)) usedBytes += bytes;
      return segment.file ? 'spool' : 'memory';
    },
    /**
     * Takes the next events, or returns undefined if the backlog is empty. Files that cannot be read are reported and skipped. Callers must
     * wait for one call to finish before the next call.
     * @param maxBytes a single event may exceed this limit
     */
    take: async (maxEvents: number, maxBytes: number): Promise<Batch | undefined> => {
      for (;;) {
        const [head] = segments;
        if (!head) return undefined;
        if (head.taken < head.size) {
          const texts = head.texts ?? (await load(head));
          if (texts.length > 0) return cut(head, texts, maxEvents, maxBytes);
        } else {
          if (head === tail) return undefined;
          segments.shift();
        }
      }
    },
    settle: ({ segment, texts, bytes }: Batch) => {
      usedBytes -= bytes;
      sent += texts.length;
      segment.sent += texts.length;
      if (segment.sent < segment.size) return;
      if (segment === tail) clear(segment);
      else finish(segment);
    },
    /** Closes the file of the tail, and deletes it if all its events are sent. Other files stay for the next process. */
    close: seal,
  };
}

function emptySegment(file: SpoolFile | undefined, texts: string[] | undefined): Segment {
  return { file, texts, bytes: 0, size: 0, taken: 0, sent: 0, isDamaged: false };
}
