import { describe, expect, it } from '@jest/globals';
import { type EmissionTally, emitLines, emptyTally } from './emission.js';

const EVENT = {
  eventId: '0190c5e4-7b1a-7def-8abc-0123456789ab',
  accountId: 'acme',
  workspace: 'main',
  resourceType: 'agent',
  resourceName: 'a',
  billingDimension: 'agent_async_requests_count',
  usage: 1,
  timestamp: '2025-10-01T00:00:00Z',
};
const line = (fields: object = {}) => `${JSON.stringify({ ...EVENT, ...fields })}\n`;

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
  async function* send(events: readonly object[]) {
    jobs.push(events);
    yield { accepted: events.length, rejected: [] };
  }
  await emitLines({ input: input(text), send, batchSize, signal }, tally);
  return { jobs, tally };
}

describe('an emission', () => {
  it('sends every line as it is, in jobs of at most the batch size', async () => {
    const usages = [3, '03.0', '3'];
    const { jobs, tally } = await emit(
      usages
        .map((usage) => line({ usage }))
        .join('')
        .replace('\n', '\r\n')
        .trimEnd(),
    );
    expect(jobs).toEqual([
      [
        { ...EVENT, usage: 3 },
        { ...EVENT, usage: '03.0' },
      ],
      [{ ...EVENT, usage: '3' }],
    ]);
    expect(tally).toMatchObject({ events: 3, jobs: 2, lastSentLine: 3, badLines: 0 });
  });

  it('sends the good lines and lists the others with their numbers', async () => {
    const { jobs, tally } = await emit(
      Buffer.concat([
        Buffer.from(`${line()}\nnope\n[1]\n`),
        Buffer.from([0x22, 0xff, 0x0a]),
        Buffer.from(line({ usage: 2 })),
      ]),
    );
    expect(jobs).toEqual([[EVENT, { ...EVENT, usage: 2 }]]);
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
    async function* send() {
      interruption.abort();
      yield { accepted: 1, rejected: [] };
    }
    const { signal } = interruption;
    await emitLines({ input: input(line().repeat(3)), send, batchSize: 1, signal }, tally);
    expect(tally).toMatchObject({ events: 1, lastSentLine: 1 });
  });

  it('says how far it came when sending fails', async () => {
    const tally = emptyTally();
    async function* send() {
      if (tally.jobs === 1) throw new Error('gone');
      yield { accepted: 1, rejected: [] };
    }
    const { signal } = new AbortController();
    const emission = emitLines({ input: input(line().repeat(3)), send, batchSize: 1, signal }, tally);
    await expect(emission).rejects.toThrow('gone');
    expect(tally).toMatchObject({ events: 1, jobs: 1, lastSentLine: 1 });
  });
});
