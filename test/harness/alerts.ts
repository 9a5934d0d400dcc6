/** What the alerts of tests are about, and a receiver of their webhooks in the test's process: what it got, and how it responds. */
import { createServer, type ServerResponse } from 'node:http';
import type { AlertSettings } from '@meterline/service/alerts';
import { z } from 'zod';
import { listening } from './listening.js';

/** Unless a test says otherwise. */
export const ALERT_SETTINGS: AlertSettings = {
  name: 'Monthly spend',
  period: 'month',
  measure: 'cost',
  amount: '100',
  thresholds: [50, 80, 100],
  filters: {},
  url: 'https://example.com/hooks',
};

interface ReceivedWebhook {
  readonly path: string;
  readonly id: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  readonly body: z.output<typeof webhook>;
}

/** Messages to Slack and Teams have other members. */
const webhook = z
  .object({ type: z.string(), data: z.object({ alertId: z.string(), threshold: z.number().optional() }) })
  .catch({ type: 'message', data: { alertId: '' } });

export interface Receiver {
  readonly url: string;
  readonly received: readonly ReceivedWebhook[];
  /** Set it to answer otherwise than with 204. */
  respond: (response: ServerResponse, webhook: ReceivedWebhook) => unknown;
  /** @throws what `respond` threw */
  close(): Promise<void>;
}

export async function startReceiver(): Promise<Receiver> {
  const received: ReceivedWebhook[] = [];
  const responses: unknown[] = [];
  const server = createServer(async (request, response) => {
    let text = '';
    for await (const chunk of request.setEncoding('utf8')) text += chunk;
    const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)]));
    const body = webhook.parse(JSON.parse(text));
    const one = { path: request.url ?? '', id: headers['webhook-id'] ?? '', headers, text, body };
    received.push(one);
    responses.push(receiver.respond(response, one));
  });
  const receiver: Receiver = {
    url: await listening(server),
    received,
    respond: (response) => response.writeHead(204).end(),
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await Promise.all(responses);
    },
  };
  return receiver;
}
