import { describe, expect, it } from '@jest/globals';
import { checkEventLine, type EmissionTally, emitLines, emptyTally, parseEventLine } from './emission.js';

async function* input(...chunks: readonly (string | Buffer)[]) {
  for (const chunk of chunks) yield Buffer.from(chunk);
}

async function emit(
  text: string | Buffer,
  batchSize = 2,
  signal = new AbortController().signal,
): Promise<{ jobs: (readonly object[])[]; tally: EmissionTally }> {
  const jobs: (readonly object[])[] = [];
  const tally = emptyTally();
  const send = async (events: readonly object[]) => jobs.push(events);
  await emitLines({ input: input(text), parse: parseEventLine, send, batchSize, signal }, tally);
  return { jobs, tally };
}

describe('an emission', () => {
  it('sends every line as it is, in jobs of at most the batch size', async () => {
    const { jobs, tally } = await emit('{"a":0.1}\r\n{"a":"0.10"}\n{"c":null}');
    expect(jobs).toEqual([[{ a: 0.1 }, { a: '0.10' }], [{ c: null }]]);
    expect(tally).toMatchObject({ events: 3, jobs: 2, lastSentLine: 3, badLines: 0 });
  });

  it('sends the good lines and lists the others with their numbers', async () => {
    const { jobs, tally } = await emit(
      Buffer.concat([Buffer.from('{"a":1}\n\nnope\n[1]\n'), Buffer.from([0x22, 0xff, 0x0a]), Buffer.from('{"a":2}\n')]),
    );
    expect(jobs).toEqual([[{ a: 1 }, { a: 2 }]]);
    expect(tally.listedBadLines).toEqual([
      { line: 3, message: expect.stringMatching(/^not JSON: /) },
      { line: 4, message: 'not a JSON object' },
      { line: 5, message: 'not UTF-8' },
    ]);
  });

  it('counts bad lines without end but lists no more than the first hundred', async () => {
    const { tally } = await emit('x\n'.repeat(1_000));
    expect([tally.badLines, tally.listedBadLines.length]).toEqual([1_000, 100]);
  });

  it('stops between two jobs when it is interrupted', async () => {
    const interruption = new AbortController();
    const tally = emptyTally();
    const send = async () => interruption.abort();
    const { signal } = interruption;
    await emitLines({ input: input('{}\n{}\n{}\n'), parse: parseEventLine, send, batchSize: 1, signal }, tally);
    expect(tally).toMatchObject({ events: 1, lastSentLine: 1 });
  });

  it('says how far it came when sending fails', async () => {
    const tally = emptyTally();
    const send = async () => {
      if (tally.jobs === 1) throw new Error('gone');
    };
    const { signal } = new AbortController();
    const emission = emitLines(
      { input: input('{}\n{}\n{}\n'), parse: parseEventLine, send, batchSize: 1, signal },
      tally,
    );
    await expect(emission).rejects.toThrow('gone');
    expect(tally).toMatchObject({ events: 1, jobs: 1, lastSentLine: 1 });
  });
});

describe('a checked line', () => {
  it('is held to the rules of an event', () => {
    const event = {
      eventId: '0190c5e4-7b1a-7def-8abc-0123456789ab',
      accountId: 'acme',
      workspace: 'main',
      resourceType: 'agent',
      resourceName: 'a',
      billingDimension: 'agent_async_requests_count',
      usage: 1,
      timestamp: '2025-10-01T00:00:00Z',
    };
    const now = new Date('2025-10-02T00:00:00Z');
    const check = (value: object) => checkEventLine(Buffer.from(JSON.stringify(value)), now);
    expect(check(event)).toMatchObject({ kind: 'event' });
    expect(check({ ...event, usage: -1 })).toMatchObject({
      kind: 'bad',
      message: expect.stringMatching(/^invalid_usage: /),
    });
  });
});
