import { describe, expect, it } from '@jest/globals';
import { parseUsageEvent } from '@meterline/catalog';
import { eventsOfRequest, parseTrace, TraceFormatError, uuidV5 } from './trace.js';

const NAME = 'azure-llm-2023-code.csv';
const HEADER = 'TIMESTAMP,ContextTokens,GeneratedTokens';
const FIRST = '2023-11-16 18:17:03.9799600,4808,10';
const SECOND = '2023-11-16 18:17:04.0319600,3180,8';

function eventsOf(text: string, options = {}) {
  const file = parseTrace(NAME, text);
  return file.requests.flatMap((request) => eventsOfRequest(file, request, options));
}

function faultOf(name: string, text: string): { line: number | undefined; message: string } {
  try {
    parseTrace(name, text);
  } catch (error) {
    if (error instanceof TraceFormatError) return { line: error.line, message: error.message };
  }
  throw new Error('expected a TraceFormatError');
}

describe('a request of the trace', () => {
  it('gives the two events that the data description defines', () => {
    const shared = {
      accountId: 'azure-llm-2023',
      workspace: 'code',
      resourceType: 'agent',
      resourceName: 'code',
      timestamp: '2023-11-16T18:17:03.9799600Z',
    };
    expect(eventsOf(`${HEADER}\r\n${FIRST}`)).toEqual([
      {
        ...shared,
        // uuid.uuid5(uuid.NAMESPACE_URL, "azure-llm-2023-code.csv:1:agent_async_requests_count") in Python
        eventId: '5eb195b4-f716-562f-88a9-8c7ef9c189a1',
        billingDimension: 'agent_async_requests_count',
        usage: 1,
      },
      {
        ...shared,
        eventId: '3ef21b4f-837a-51df-b373-8cca8b52d94a',
        billingDimension: 'agent_compute_runtime_gbs',
        // 80 × (4808 × 0.0002 + 10 × 0.03) = 80 × (0.9616 + 0.3)
        usage: '100.928',
      },
    ]);
  });

  it('keeps every digit of a usage that a double could not hold', () => {
    const [, compute] = eventsOf(`${HEADER}\n2023-11-16 18:17:03.9799600,999999999,999999999`);
    // 80 × (999999999 × 0.0302)
    expect(compute?.usage).toBe('2415999997.584');
  });

  it('is accepted by the ingest rules', () => {
    const now = Date.parse('2024-01-01T00:00:00Z');
    expect(eventsOf(`${HEADER}\n${FIRST}`).map((event) => parseUsageEvent(event, now).ok)).toEqual([true, true]);
  });

  it('moves by whole hours and keeps its ids, fraction digits and usage', () => {
    const [original] = eventsOf(`${HEADER}\n${FIRST}`);
    const [shifted] = eventsOf(`${HEADER}\n${FIRST}`, { shiftHours: -24 * 16 });
    expect(shifted).toEqual({ ...original, timestamp: '2023-10-31T18:17:03.9799600Z' });
  });

  it('goes to another account when told so', () => {
    expect(eventsOf(`${HEADER}\n${FIRST}`, { accountId: 'acme' })[0]?.accountId).toBe('acme');
  });
});

describe('a trace file', () => {
  it.each([
    ['LF', `${HEADER}\n${FIRST}\n${SECOND}\n`],
    ['CRLF', `${HEADER}\r\n${FIRST}\r\n${SECOND}\r\n`],
    ['CRLF and nothing behind the last line', `${HEADER}\r\n${FIRST}\r\n${SECOND}`],
  ])('may end its lines in %s', (_ends, text) => {
    expect(parseTrace(NAME, text).requests).toEqual(parseTrace(NAME, `${HEADER}\n${FIRST}\n${SECOND}\n`).requests);
    expect(parseTrace(NAME, text).requests.map(({ dataLine }) => dataLine)).toEqual([1, 2]);
  });

  it.each([
    ['an empty line between requests', `${HEADER}\n${FIRST}\n\n${SECOND}`, 3],
    ['a day that does not exist', `${HEADER}\n${FIRST}\n2023-11-31 18:17:03.9799600,1,1`, 3],
    ['a negative count', `${HEADER}\n2023-11-16 18:17:03.9799600,-1,1`, 2],
    ['a missing column', `${HEADER}\n2023-11-16 18:17:03.9799600,1`, 2],
    ['another header', `timestamp,tokens\n${FIRST}`, 1],
    ['nothing at all', '', 1],
  ])('is refused for %s, with the line', (_fault, text, line) => {
    expect(faultOf(NAME, text).line).toBe(line);
  });

  it('is refused under another name, because ids derive from it', () => {
    expect(faultOf('code.csv', `${HEADER}\n${FIRST}`)).toEqual({
      line: undefined,
      message: expect.stringContaining('azure-llm-2023-code.csv'),
    });
  });
});

const DNS_NAMESPACE = '6ba7b810-9dad-11d1-80b4-00c04fd430c8';

describe('UUIDv5', () => {
  it('gives the example of RFC 9562, appendix A.4', () => {
    expect(uuidV5(DNS_NAMESPACE, 'www.example.com')).toBe('2ed6657d-e927-568b-95e1-2665a8aea6a2');
  });
});
