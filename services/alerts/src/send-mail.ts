/** Sends one e-mail to one recipient, through the mail server of the operator. */
import { property } from '@meterline/catalog';
import { type Delivery, mailBody } from '@meterline/service/alerts';
import { createTransport } from 'nodemailer';
import type { AttemptResult } from './post-webhook.js';

export type SendMail = (delivery: Delivery) => Promise<AttemptResult>;

/** Mail servers may check a message for long before they accept it. If an attempt gives up earlier, the message is sent again. */
export const MAIL_TIMEOUT_MS = 120_000;

/** Replies to these SMTP commands are about the recipient or the message. Replies to others are about the server or its settings. */
const ABOUT_DELIVERY: readonly unknown[] = ['RCPT TO', 'DATA'];
const PERMANENT = 500;
/** The prefix of codes about security and policy, such as a missing login. The operator can correct these. Source: RFC 3463. */
const POLICY = '5.7.';

/**
 * Returns a function that sends mails. Its promise rejects only if the delivery is not an e-mail.
 * @param url address of the mail server. It may be private, unlike the address of a webhook, because only the operator sets it
 * @param timeoutMs covers a whole attempt, from the connection to the last reply
 */
export function mailSender(url: string, from: string, timeoutMs = MAIL_TIMEOUT_MS): SendMail {
  const transport = createTransport({ url, disableFileAccess: true, disableUrlAccess: true });
  const domain = /@([^>]+)/.exec(from)?.[1];
  return async ({ id, to, body = '', createdAt }) => {
    const message = {
      ...mailBody.parse(JSON.parse(body)),
      ...{ from, to, messageId: `<${id}@${domain}>`, date: new Date(createdAt) },
      // Keeps out-of-office replies away. Source: RFC 3834, section 5.
      headers: { 'Auto-Submitted': 'auto-generated' },
      signal: AbortSignal.timeout(timeoutMs),
    };
    return transport.sendMail(message).then(
      ({ response }) => ({ isDelivered: true, outcome: response.slice(0, 3) }),
      (error) => failureOf(error, timeoutMs),
    );
  };
}

/** The outcome has no text of the server: customers read it, and the text may name internal hosts. */
function failureOf(error: unknown, timeoutMs: number): AttemptResult {
  const [code, command, response] = ['code', 'command', 'response'].map((name) => property(error, name));
  const [, status, detail] = /^(\d{3})[ -](\d\.\d{1,3}\.\d{1,3})?/.exec(String(response)) ?? [];
  const noStatus =
    property(error, 'name') === 'AbortError'
      ? `no response within ${timeoutMs / 1000} s`
      : `the mail server cannot be reached (${code})`;
  const isAboutDelivery = ABOUT_DELIVERY.includes(command);
  return {
    isDelivered: false,
    outcome: status === undefined ? noStatus : [status, detail].filter(Boolean).join(' '),
    isFinal: isAboutDelivery && Number(status) >= PERMANENT && !detail?.startsWith(POLICY),
    // A reply about a recipient usually contains the address, which does not belong in the log.
    reason: isAboutDelivery || !(error instanceof Error) ? undefined : error.message,
  };
}
