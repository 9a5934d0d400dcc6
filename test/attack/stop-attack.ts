/** Issue: SIGTERM cuts answers that are being sent. Also packages/service/src/draining.test.ts. */
import { Agent, request } from 'node:http';
import { STOP_DEADLINE_MS } from '@meterline/service';
import { type HttpProcess, NO_LIMITS } from '../services.js';
import type { Attack } from './attack.js';
import type { Findings } from './findings.js';
import { largeAnswer } from './large-answer.js';

const ACCOUNT = 'stopped';
const CLIENTS = 10;
const STOPS = 3;

export const stopAttack: Attack = {
  name: 'stop',
  what: 'SIGTERM while large answers are sent on busy connections',
  run: async ({ site, findings }) => {
    const path = await largeAnswer(site, ACCOUNT);
    const key = await site.key(ACCOUNT);
    let whole = 0;
    let unfinished = 0;
    for (let stop = 0; stop < STOPS; stop += 1) {
      const query = await site.startQuery(NO_LIMITS);
      const agent = new Agent({ keepAlive: true });
      let first = () => {};
      const isBusy = new Promise<void>((resolve) => {
        first = resolve;
      });
      const cut: string[] = [];
      const client = async () => {
        while (await askWhole(query.url + path, key, agent, (fault) => cut.push(fault), findings)) {
          whole += 1;
          first();
        }
      };
      const clients = Array.from({ length: CLIENTS }, client);
      await Promise.race([isBusy, Promise.all(clients)]);
      const code = await query.stop();
      if (code !== 0) findings.add(`the process ended with ${code}`);
      await Promise.all(clients);
      agent.destroy();
      // On a busy machine the last answers may not be ready by the deadline, which then ends them.
      if (drainedFor(query) < STOP_DEADLINE_MS) for (const fault of cut) findings.add(fault);
      else unfinished += cut.length;
    }
    return {
      sent: `${STOPS} × SIGTERM beside ${CLIENTS} clients`,
      stood: `${whole} answers, each whole; ${unfinished} not ready by the deadline`,
    };
  },
};

/** By its own log, in milliseconds. */
function drainedFor(query: HttpProcess): number {
  const timeOf = (wanted: string) => Number(query.entries().find(({ event }) => event === wanted)?.['time']);
  return timeOf('stopped') - timeOf('stopping');
}

/** @returns whether there was an answer; false when the server takes no connections any more */
function askWhole(
  url: string,
  key: string,
  agent: Agent,
  onCut: (fault: string) => void,
  findings: Findings,
): Promise<boolean> {
  return new Promise((resolve) => {
    const sent = request(url, { agent, headers: { authorization: `Bearer ${key}` } }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', (error) => {
        onCut(`an answer was cut off: ${error}`);
        resolve(false);
      });
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString();
        const { statusCode } = response;
        if (!isJson(text)) findings.add(`an answer ${statusCode} is not whole`, text.slice(-100));
        if (statusCode !== 200 && statusCode !== 503) findings.add(`an answer is ${statusCode}`, text.slice(0, 300));
        resolve(statusCode === 200);
      });
    });
    sent.on('error', (error) => {
      const isRefused = 'code' in error && error.code === 'ECONNREFUSED';
      // A connection that is new to the server may meet its end; one that was used for an answer may not.
      if (!isRefused && sent.reusedSocket) onCut(`a busy connection was reset: ${error}`);
      resolve(false);
    });
    sent.end();
  });
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
