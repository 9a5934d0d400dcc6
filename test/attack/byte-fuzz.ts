/** Sends bytes that need not be HTTP. The server may refuse or close, but not fail, and not wait for ever. */
import type { SeededRandom } from '../faults/seeded-random.js';
import { byteCase } from './byte-cases.js';
import type { Findings } from './findings.js';
import { Hang, type HttpClient } from './http-client.js';
import { inLanes } from './lanes.js';

const LANES = 8;
const STATUS_LINE = /^HTTP\/1\.1 (\d{3}) /gm;
/** What RFC 9110 has for a method that a server does not know, and for a version that it does not speak. */
const OF_HTTP_ITSELF = [501, 505];

/** @returns how many answers had which status; what was wrong is in the findings */
export function fuzzBytes(
  client: HttpClient,
  { random, count, findings }: { random: SeededRandom; count: number; findings: Findings },
): Promise<ReadonlyMap<number, number>> {
  return inLanes({ lanes: LANES, count }, async (report) => {
    const bytes = byteCase(random);
    try {
      const answer = await client.sendBytes(bytes, { halfClosed: true });
      for (const [, digits] of answer.matchAll(STATUS_LINE)) {
        const status = Number(digits);
        report(status);
        if (status < 500 || OF_HTTP_ITSELF.includes(status)) continue;
        findings.add(`status ${status}`, JSON.stringify(bytes.toString('latin1').slice(0, 400)));
      }
    } catch (error) {
      findings.add(error instanceof Hang ? 'hang' : 'broken connection', String(error));
    }
  });
}
