/** A mail server in the test's process: what it got, and how it replies to each recipient. */
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { SMTPServer } from 'smtp-server';

interface ReceivedMail {
  readonly to: string;
  /** Of the header Message-ID. */
  readonly id: string;
  /** The message as it came, headers and both parts. */
  readonly raw: string;
  readonly text: string;
  readonly html: string;
}

export interface MailServer {
  readonly url: string;
  readonly received: readonly ReceivedMail[];
  /** Set it to reject a recipient with an error from {@link reply}, or to never reply. */
  onRecipient: (to: string, done: (error?: Error) => void) => void;
  close(): Promise<void>;
  /** Starts it again after {@link close}, on the same port. */
  reopen(): Promise<void>;
}

export function reply(responseCode: number, message: string): Error {
  return Object.assign(new Error(message), { responseCode });
}

export async function startMailServer(): Promise<MailServer> {
  const received: ReceivedMail[] = [];
  const open = async (port: number) => {
    const smtp = new SMTPServer({
      disabledCommands: ['AUTH', 'STARTTLS'],
      closeTimeout: 1,
      logger: false,
      onRcptTo: ({ address }, _session, done) => server.onRecipient(address, done),
      onData: (stream, { envelope }, done) => {
        let raw = '';
        stream.setEncoding('utf8');
        stream.on('data', (chunk: string) => {
          raw += chunk;
        });
        stream.on('end', () => {
          const to = envelope.rcptTo.map(({ address }) => address).join();
          const id = /^message-id: <([^@>]+)/im.exec(raw)?.[1] ?? '';
          received.push({ to, id, raw, text: partOf(raw, 'text/plain'), html: partOf(raw, 'text/html') });
          done();
        });
      },
    });
    // A client that gives up resets its connection.
    smtp.on('error', () => undefined);
    await once(smtp.listen(port, '127.0.0.1'), 'listening');
    return smtp;
  };
  let smtp = await open(0);
  const { port } = smtp.server.address() as AddressInfo;
  const server: MailServer = {
    url: `smtp://127.0.0.1:${port}`,
    received,
    onRecipient: (_to, done) => done(),
    close: () => new Promise((resolve) => smtp.close(() => resolve())),
    reopen: async () => {
      smtp = await open(port);
    },
  };
  return server;
}

/** Decodes quoted-printable, the encoding of both parts. */
function partOf(raw: string, type: string): string {
  const boundary = /boundary="([^"]+)"/.exec(raw)?.[1] ?? '';
  const part = raw.split(`--${boundary}`).find((each) => each.toLowerCase().includes(`content-type: ${type}`)) ?? '';
  const body = part.slice(part.indexOf('\r\n\r\n') + 4).trimEnd();
  if (!/quoted-printable/i.test(part)) return body.replaceAll('\r\n', '\n');
  const bytes = body
    .replaceAll('=\r\n', '')
    .replace(/=([0-9A-F]{2})/g, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)));
  return Buffer.from(bytes, 'latin1').toString('utf8').replaceAll('\r\n', '\n');
}
