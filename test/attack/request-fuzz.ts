/** Sends fuzzed requests and judges every answer: by the model of requests, and by the OpenAPI document. */
import { z } from 'zod';
import { checkAnswer } from '../contract/openapi-check.js';
import type { SeededRandom } from '../faults/seeded-random.js';
import type { Findings } from './findings.js';
import { Hang, type HttpClient, type RawAnswer } from './http-client.js';
import { inLanes } from './lanes.js';
import { type CallerCase, type CaseSource, requestCase } from './request-cases.js';
import { expectedOutcome } from './request-model.js';

const LANES = 12;

const errorBody = z.object({ code: z.number(), error: z.string(), requestId: z.string() });

/** @returns how many requests got which status; what was wrong is in the findings */
export function fuzzRequests(
  client: HttpClient,
  source: CaseSource,
  { random, count, findings }: { random: SeededRandom; count: number; findings: Findings },
): Promise<ReadonlyMap<number, number>> {
  return inLanes({ lanes: LANES, count }, async (report) => {
    const sent = requestCase(random, source);
    const answer = await answerOf(client, sent, findings);
    if (!answer) return;
    report(answer.status);
    for (const fault of faultsOf(sent, answer)) findings.add(fault, describe(sent, answer));
  });
}

async function answerOf(client: HttpClient, sent: CallerCase, findings: Findings): Promise<RawAnswer | undefined> {
  try {
    return await client.send(sent);
  } catch (error) {
    if (error instanceof Hang) findings.add('hang', error.message);
    // A server may answer and close before it has read a large body; the client then sees a reset.
    else if (sent.body === undefined) findings.add('broken connection', `${String(error)}: ${describe(sent)}`);
    return undefined;
  }
}

function faultsOf(sent: CallerCase, answer: RawAnswer): string[] {
  const { status, headers, text } = answer;
  // Outages and limits are documented, and may come instead of any answer.
  if ((status === 503 || status === 429) && headers.has('retry-after')) return [];
  if (status >= 500) return [`status ${status}`];
  const faults: string[] = [];
  if (headers.get('x-request-id') === null) faults.push('no X-Request-Id');
  const path = sent.target.replace(/\?.*$/s, '');
  const expected = expectedOutcome(sent);
  if (expected === undefined) return faults;
  try {
    const isJson = headers.get('content-type')?.startsWith('application/json') && text !== '';
    const body: unknown = isJson ? JSON.parse(text) : undefined;
    checkAnswer({ method: sent.method, path, status, headers, text, body });
    const outcome = outcomeOf(status, headers, body);
    const isExpected = body === undefined ? expected.startsWith(String(status)) : outcome.startsWith(expected);
    if (!isExpected) faults.push(`${outcome} instead of ${expected}`);
  } catch (error) {
    faults.push(`undocumented: ${error instanceof Error ? error.message.replaceAll(path, 'PATH') : String(error)}`);
  }
  return faults;
}

/** The status and, for an error with a body, its code: `400 invalid_parameter`. An answer to HEAD has no body. */
function outcomeOf(status: number, headers: Headers, body: unknown): string {
  if (status < 400 || body === undefined) return String(status);
  const { code, error, requestId } = errorBody.parse(body);
  if (code !== status || requestId !== headers.get('x-request-id')) return `${status} with the body of ${code}`;
  return `${status} ${error}`;
}

function describe({ method, target, headers, caller }: CallerCase, answer?: RawAnswer): string {
  const { authorization: _a, 'x-svc-authorization': _b, ...others } = headers;
  const asked = `${method} ${target.slice(0, 400)} by ${caller.kind} ${JSON.stringify(others).slice(0, 300)}`;
  return answer ? `${asked} → ${answer.status} ${answer.text.slice(0, 300)}` : asked;
}
