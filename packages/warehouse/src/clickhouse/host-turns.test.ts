/** Hosts that answer, refuse, or take connections and are silent. */
import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { HostTurns } from './host-turns.js';
import { type Host, openHosts } from './hosts.js';

const PATIENCE = { suspectMs: 100, signOfLifeMs: 1_000, askAgainMs: 200 };
const NOWHERE = 'http://127.0.0.1:1';

/** Answers with its name, or when it hangs, not at all. */
class NamedServer {
  readonly name: string;
  readonly #server: Server;
  readonly #unanswered: ServerResponse[] = [];
  isHanging = false;
  asked = 0;

  constructor(name: string) {
    this.name = name;
    this.#server = createServer((request, response) => {
      if (request.url !== '/ping') this.asked += 1;
      if (this.isHanging) this.#unanswered.push(response);
      else response.end(name);
    });
  }

  async open(): Promise<string> {
    await once(this.#server.listen(0, '127.0.0.1'), 'listening');
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** What came meanwhile is answered too. */
  goOn(): void {
    this.isHanging = false;
    for (const response of this.#unanswered.splice(0)) response.end(this.name);
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}

let one: NamedServer;
let other: NamedServer;
let hosts: Host[];
beforeEach(async () => {
  [one, other] = [new NamedServer('one'), new NamedServer('other')];
  hosts = openHosts(`${await one.open()},${await other.open()}`, 30_000, 10);
});
afterEach(async () => {
  await Promise.all(
    hosts.flatMap(({ statements, short, pings }) => [statements, short, pings].map((p) => p.destroy())),
  );
  one.close();
  other.close();
});

async function ask({ statements }: Host, signal: AbortSignal): Promise<string> {
  const { body } = await statements.request({ method: 'POST', path: '/', body: 'x', signal });
  return body.text();
}

it('each gets its turn', async () => {
  const turns = new HostTurns(hosts, PATIENCE);
  const answers = [await turns.send(ask, true), await turns.send(ask, true), await turns.send(ask, true)];
  expect(answers).toEqual(['one', 'other', 'one']);
});

it('one that refuses connections is passed over, also by what must not be sent twice', async () => {
  const refusing = openHosts(NOWHERE, 30_000, 10);
  const turns = new HostTurns([...refusing, ...hosts], PATIENCE);
  for (let n = 0; n < 3; n += 1) expect(['one', 'other']).toContain(await turns.send(ask, false));
  const nobody = new HostTurns(refusing, PATIENCE);
  await expect(nobody.send(ask, true)).rejects.toMatchObject({ code: 'ECONNREFUSED' });
});

it('one that hangs is left, gets nothing more, and has its turns again when it goes on', async () => {
  const turns = new HostTurns(hosts, PATIENCE);
  one.isHanging = true;
  const meanwhile = [turns.send(ask, true), turns.send(ask, true), turns.send(ask, true)];
  expect(await Promise.all(meanwhile)).toEqual(['other', 'other', 'other']);
  const asked = one.asked;
  expect(asked).toBeGreaterThan(0);
  for (let n = 0; n < 6; n += 1) expect(await turns.send(ask, false)).toBe('other');
  expect(one.asked).toBe(asked);
  one.goOn();
  while ((await turns.send(ask, true)) !== 'one');
});

it('one that is slow and gives a sign of life is waited for', async () => {
  const turns = new HostTurns(hosts, PATIENCE);
  let isSlow = true;
  const slowly = async (host: Host, signal: AbortSignal) => {
    const answer = await ask(host, signal);
    await new Promise((resolve) => setTimeout(resolve, 4 * PATIENCE.suspectMs));
    isSlow = signal.aborted;
    return answer;
  };
  expect(await turns.send(slowly, true)).toBe('one');
  expect(isSlow).toBe(false);
});

it('what must not be sent twice stays with the one that hangs, and so does the last one', async () => {
  const turns = new HostTurns(hosts, PATIENCE);
  one.isHanging = true;
  const written = turns.send(ask, false);
  expect(await turns.send(ask, true)).toBe('other');
  expect(await turns.send(ask, true)).toBe('other');
  one.goOn();
  expect(await written).toBe('one');

  const single = new HostTurns(hosts.slice(0, 1), PATIENCE);
  one.isHanging = true;
  const waiting = single.send(ask, true);
  await new Promise((resolve) => setTimeout(resolve, 4 * PATIENCE.suspectMs));
  one.goOn();
  expect(await waiting).toBe('one');
});
