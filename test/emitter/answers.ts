/** What an emitter sends over HTTP, and what a collector answers, or what stands in front of it. */
import type { IncomingMessage } from 'node:http';
import { gunzipSync } from 'node:zlib';
import type { UsageEventInput } from '@meterline/catalog';

export interface Received {
  readonly path: string | undefined;
  readonly key: string | undefined;
  readonly encoding: string | undefined;
  readonly events: readonly UsageEventInput[];
  readonly atMs: number;
}

export interface Answer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** JSON, or a text that is sent as it is. */
  readonly body: unknown;
}

export async function read(request: IncomingMessage): Promise<Received> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  const { authorization, 'content-encoding': encoding } = request.headers;
  const body = Buffer.concat(chunks);
  const events = JSON.parse(String(encoding === 'gzip' ? gunzipSync(body) : body));
  return { path: request.url, key: authorization, encoding, events, atMs: performance.now() };
}

/** What the collector answers: the events for which there is a reason are refused. */
export function receipt(
  events: readonly UsageEventInput[],
  refuse: (event: UsageEventInput) => boolean = () => false,
): Answer {
  const results = events.map((event, index) => {
    const { eventId } = event;
    if (!refuse(event)) return { index, eventId, status: 'accepted' };
    return { index, eventId, status: 'refused', reason: 'no_price', message: 'there is no price …' };
  });
  const refused = results.filter(({ status }) => status === 'refused').length;
  const accepted = events.length - refused;
  return { status: accepted > 0 ? 202 : 400, body: { accepted, refused, results } };
}

/** Of one event. */
export const TOO_EARLY: Answer = {
  status: 400,
  body: {
    accepted: 0,
    refused: 1,
    results: [{ index: 0, status: 'refused', reason: 'timestamp_in_future', message: 'it is in the future' }],
  },
};
