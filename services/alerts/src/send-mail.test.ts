import { once } from 'node:events';
import { createServer } from 'node:net';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import type { Delivery } from '@meterline/service/alerts';
import { listening } from '../../../test/harness/listening.js';
import { type MailServer, reply, startMailServer } from '../../../test/harness/mail.js';
import { readEnv } from './env.js';
import { mailSender } from './send-mail.js';

const FROM = 'Example Billing <billing@example.com>';
const BODY = {
  subject: 'Zürich: 80% of $100 reached',
  text: 'Cost so far: $80\nÖffnen',
  html: '<p>Cost so far: <b>$80</b></p>',
};
const DELIVERY: Delivery = {
  ...{ id: 'dlv_0f1e', account: 'acme', alertId: 'alr_1', type: 'usage.threshold_reached', payload: '{}' },
  ...{ body: JSON.stringify(BODY), to: 'ops@example.com', createdAt: '2025-10-15T12:00:00.000Z' },
  ...{ state: 'pending', attempts: 0, failures: 0, seenBy: 'member' },
};

let server: MailServer;
beforeEach(async () => {
  server = await startMailServer();
});
afterEach(() => server.close());

it('a mail has both parts, and the same Message-ID and date in every attempt', async () => {
  const send = mailSender(server.url, FROM);
  expect(await send(DELIVERY)).toEqual({ isDelivered: true, outcome: '250' });
  await send({ ...DELIVERY, attempts: 1 });
  expect(server.received).toHaveLength(2);
  for (const { to, id, text, html, raw } of server.received) {
    expect([to, id, text, html]).toEqual(['ops@example.com', 'dlv_0f1e', BODY.text, BODY.html]);
    expect(raw).toContain('From: Example Billing <billing@example.com>\r\n');
    expect(raw).toContain('Message-ID: <dlv_0f1e@example.com>\r\n');
    expect(raw).toContain('Date: Wed, 15 Oct 2025 12:00:00 +0000\r\n');
    expect(raw).toContain('Auto-Submitted: auto-generated\r\n');
  }
});

it.each([
  [550, '5.1.1 no such user at 10.0.0.7', { outcome: '550 5.1.1', isFinal: true }],
  [451, '4.7.1 greylisted, try again', { outcome: '451 4.7.1', isFinal: false }],
  [452, 'full', { outcome: '452', isFinal: false }],
  // The operator has not logged in to the server, or the server does not relay for it.
  [554, '5.7.1 relay access denied', { outcome: '554 5.7.1', isFinal: false }],
])(
  'a recipient that the server rejects with %i fails at once only if the reply is permanent',
  async (code, text, result) => {
    server.onRecipient = (_to, done) => done(reply(code, text));
    expect(await mailSender(server.url, FROM)(DELIVERY)).toEqual({ isDelivered: false, ...result });
  },
);

it('a sender that the server rejects is tried again, and only the log has the text of the reply', async () => {
  const refusing = createServer((socket) => {
    socket.write('220 mail\r\n');
    socket.on('data', (chunk) => {
      socket.write(String(chunk).startsWith('MAIL') ? '550 5.7.1 relay of mx1.internal denied\r\n' : '250 mail\r\n');
    });
  });
  const url = (await listening(refusing)).replace('http:', 'smtp:');
  const result = await mailSender(url, FROM)(DELIVERY);
  expect(result).toEqual({
    ...{ isDelivered: false, isFinal: false, outcome: '550 5.7.1' },
    reason: expect.stringContaining('relay of mx1.internal denied'),
  });
  refusing.close();
  await once(refusing, 'close');
});

it('a server that is down, or that does not reply in time, is tried again', async () => {
  const silent = createServer((socket) => {
    socket.write('220 mail\r\n');
    socket.resume();
  });
  const url = (await listening(silent)).replace('http:', 'smtp:');
  expect(await mailSender(url, FROM, 100)(DELIVERY)).toMatchObject({
    isDelivered: false,
    outcome: 'no response within 0.1 s',
    isFinal: false,
  });
  silent.close();
  // Happens only once the attempt has closed its connection. Otherwise attempts on a slow server would collect connections.
  await once(silent, 'close');
  expect(await mailSender(url, FROM)(DELIVERY)).toMatchObject({
    isDelivered: false,
    outcome: 'the mail server cannot be reached (ESOCKET)',
    isFinal: false,
  });
});

it.each([
  [{ ALERT_SMTP_URL: 'https://mail.example.com' }, 'ALERT_SMTP_URL must be a URL such as smtps://'],
  [{ ALERT_SMTP_URL: 'smtp://mail.internal' }, 'must be set together'],
  [{ ALERT_SMTP_FROM: FROM }, 'must be set together'],
  [
    { ALERT_SMTP_URL: 'smtp://mail.internal', ALERT_SMTP_FROM: 'Billing' },
    'ALERT_SMTP_FROM must be an address such as',
  ],
])('the settings %j are rejected', (variables, message) => {
  expect(() => readEnv(variables)).toThrow(message);
});

it('a sender may have a name', () => {
  const settings = { ALERT_SMTP_URL: 'smtp://mail.internal', ALERT_SMTP_FROM: FROM };
  expect(readEnv(settings)).toMatchObject(settings);
});
