/**
 * A fake of replicas that are written asynchronously: two databases, and a proxy in front of each. What is inserted through one
 * reaches the other when it is released, unless the insert asks for a quorum of both: then before it is answered. Real replicas
 * cannot run here; what this shows is only why Meterline needs the quorum.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import type { WarehouseOptions } from '@meterline/warehouse';

interface Insert {
  readonly to: string;
  readonly url: URL;
  readonly headers: Record<string, string>;
  readonly body: Buffer;
}

export interface LaggingReplicas {
  /** The address of each replica. */
  readonly urls: readonly [string, string];
  /** Everything that was held back arrives. */
  release(): Promise<void>;
  stop(): void;
}

/** @param replicas two databases with the same schema, on one server */
export async function startLaggingReplicas(
  replicas: readonly [WarehouseOptions, WarehouseOptions],
): Promise<LaggingReplicas> {
  const held: Insert[] = [];
  const send = async ({ to, url, headers, body }: Insert) => {
    url.searchParams.set('database', to);
    return fetch(url, { method: 'POST', headers, body: new Uint8Array(body) });
  };

  const pass = async (own: number, incoming: IncomingMessage, response: ServerResponse) => {
    const body = await buffer(incoming);
    const [here, there] = own === 0 ? replicas : [replicas[1], replicas[0]];
    const url = new URL(incoming.url ?? '/', here.url);
    const headers = { authorization: incoming.headers.authorization ?? '' };
    const answer = await send({ to: here.database, url, headers, body });
    const isInsert = (url.searchParams.get('query') ?? body.toString()).trimStart().startsWith('INSERT');
    if (isInsert && answer.ok) {
      const copy = { to: there.database, url: new URL(url), headers, body };
      if (Number(url.searchParams.get('insert_quorum') ?? 1) > 1) await send(copy);
      else held.push(copy);
    }
    response.writeHead(answer.status).end(Buffer.from(await answer.arrayBuffer()));
  };

  const servers = [0, 1].map((own) =>
    createServer((incoming, response) => void pass(own, incoming, response).catch(() => response.destroy())),
  );
  const [first, second] = await Promise.all(servers.map(listening));
  return {
    urls: [first ?? '', second ?? ''],
    release: async () => {
      for (const insert of held.splice(0)) await send(insert);
    },
    stop: () => {
      for (const server of servers) server.close();
      for (const server of servers) server.closeAllConnections();
    },
  };
}

async function listening(server: Server): Promise<string> {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  return `http://127.0.0.1:${port}`;
}
