/** Writes the messages of alerts to people: to Slack, to Microsoft Teams, and by e-mail. A message is stored, and is the same in each attempt. */
import {
  alertAmountText,
  alertUnit,
  DEFAULT_VIEW_QUERY,
  formatTimestamp,
  formatUsage,
  formatUsd,
  type Window,
  writeViewQuery,
} from '@meterline/catalog';
import { z } from 'zod';
import type { Alert, Fired } from './alert.js';

/** The body of a delivery by e-mail, as JSON. */
export const mailBody = z.object({ subject: z.string(), text: z.string(), html: z.string() });

/** Longer links are omitted: Slack rejects messages with more than 3,000 characters in a text. */
const MAX_LINK_LENGTH = 2_000;

interface Message {
  readonly title: string;
  readonly summary: string;
  readonly facts: readonly (readonly [label: string, value: string])[];
  readonly link: string | undefined;
  readonly howToStop: string;
}

/**
 * Returns the message of a delivery, or undefined if the alert posts the payload itself. Without `fired`, the message is a test.
 * @param pageUrl the public address of the page, if it is known
 */
export function messageBody(
  alert: Alert,
  period: Window,
  pageUrl: string | undefined,
  fired?: Fired,
): string | undefined {
  if (alert.to === undefined && alert.format === 'standard') return undefined;
  const message = messageOf(alert, period, pageUrl, fired);
  if (alert.to !== undefined) return JSON.stringify(mail(message));
  return JSON.stringify(alert.format === 'slack' ? slackMessage(message) : teamsMessage(message));
}

function messageOf(alert: Alert, period: Window, pageUrl: string | undefined, fired: Fired | undefined): Message {
  const { account, id, measure, name } = alert;
  const subject = measure === 'cost' ? 'Cost' : 'Usage';
  const budget = alertAmountText(alert.amount, alert);
  const when = periodText(alert, period);
  const share = `${fired?.threshold}% of ${budget}`;
  const [title, summary] =
    fired === undefined
      ? [`Test of the alert ${name}`, 'This is a test. No threshold was reached.']
      : fired.forecast === undefined
        ? [`${name}: ${share} reached`, `${subject} in ${when} has reached ${share}.`]
        : [
            `${name}: forecast to reach ${share}`,
            `This is a forecast: by the end of ${when}, ${subject.toLowerCase()} is expected to reach ${share}.`,
          ];
  const amounts = [
    [`${subject} so far`, fired?.value],
    ['Forecast', fired?.forecast],
  ] as const;
  const people = alert.to === undefined ? '' : 'remove your address from the alert, or to ';
  return {
    title,
    summary,
    facts: [
      ['Account', account],
      ['Alert', name],
      ...amounts.flatMap(([label, value]) => (value === undefined ? [] : [[label, figureText(value, alert)] as const])),
      fired ? ['Threshold', share] : ['Amount', budget],
      ['Period', `${when} (UTC)`],
    ],
    link: pageUrl === undefined ? undefined : viewLink(pageUrl, alert, period),
    howToStop: `To stop these messages, ask an admin of the account ${account} to ${people}delete the alert ${id}.`,
  };
}

function periodText({ period }: Alert, { startTime }: Window): string {
  if (period === 'day') return formatTimestamp(startTime).slice(0, 10);
  return new Date(startTime).toLocaleDateString('en-US', { month: 'long', year: 'numeric', timeZone: 'UTC' });
}

/** Formats an amount for people, rounded. The payload has the exact value. */
function figureText(value: string, alert: Alert): string {
  const unit = alertUnit(alert);
  return unit === undefined ? formatUsd(value) : formatUsage(value, unit, 2);
}

/** Returns the address of the page that shows what the alert measures. */
function viewLink(pageUrl: string, { account, filters, measure }: Alert, period: Window): string | undefined {
  const view = {
    ...DEFAULT_VIEW_QUERY,
    measure,
    period: { from: period.startTime, to: period.endTime },
    filters: Object.fromEntries(Object.entries(filters).map(([name, values]) => [name, { values, isExcluded: false }])),
  };
  const query = new URLSearchParams({ account });
  for (const [name, value] of writeViewQuery(view)) query.append(name, value);
  const link = `${pageUrl}/?${query}`;
  return link.length > MAX_LINK_LENGTH ? undefined : link;
}

/** Escapes text for HTML, and for Slack, which has the same three entities. */
function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

/** Source: Slack, "Sending messages using incoming webhooks", "Section block" and "Formatting message text" (escaping). */
function slackMessage({ title, summary, facts, link, howToStop }: Message) {
  const mrkdwn = (text: string) => ({ type: 'mrkdwn', text });
  const section = (text: string) => ({ type: 'section', text: mrkdwn(text) });
  return {
    text: escaped(`${title}. ${summary}`),
    blocks: [
      section(`*${escaped(title)}*\n${escaped(summary)}`),
      { type: 'section', fields: facts.map(([label, value]) => mrkdwn(`*${label}*\n${escaped(value)}`)) },
      ...(link === undefined ? [] : [section(`<${escaped(link)}|Show the usage>`)]),
      { type: 'context', elements: [mrkdwn(escaped(howToStop))] },
    ],
  };
}

/**
 * The card uses TextRun, which shows names as they are, because TextBlock would read them as Markdown. Source: Microsoft Teams, "Send Adaptive
 * Cards using an incoming webhook"; Adaptive Cards, schema of RichTextBlock, TextRun and Action.OpenUrl.
 */
function teamsMessage({ title, summary, facts, link, howToStop }: Message) {
  const run = (text: string, style: object = {}) => ({ type: 'TextRun', text, ...style });
  const block = (...inlines: object[]) => ({ type: 'RichTextBlock', inlines });
  const content = {
    $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
    type: 'AdaptiveCard',
    version: '1.2',
    body: [
      block(run(title, { weight: 'Bolder', size: 'Medium' })),
      block(run(summary)),
      ...facts.map(([label, value]) => block(run(`${label}: `, { weight: 'Bolder' }), run(value))),
      block(run(howToStop, { isSubtle: true, size: 'Small' })),
    ],
    ...(link !== undefined && { actions: [{ type: 'Action.OpenUrl', title: 'Show the usage', url: link }] }),
  };
  const contentType = 'application/vnd.microsoft.card.adaptive';
  return { type: 'message', attachments: [{ contentType, contentUrl: null, content }] };
}

const CELL = 'padding:4px 16px 4px 0;text-align:left;vertical-align:top';

function mail({ title, summary, facts, link, howToStop }: Message): z.output<typeof mailBody> {
  const lines = facts.map(([label, value]) => `${label}: ${value}`);
  const rows = facts.map(([label, value]) => {
    return `<tr><th style="${CELL};font-weight:normal;color:#666">${label}</th><td style="${CELL}">${escaped(value)}</td></tr>`;
  });
  const button = link && `<p><a href="${escaped(link)}">Show the usage</a></p>`;
  const html = [
    '<!doctype html><html lang="en"><body style="font:15px/1.5 sans-serif;color:#222">',
    `<h1 style="font-size:20px">${escaped(title)}</h1>`,
    `<p>${escaped(summary)}</p>`,
    `<table style="border-collapse:collapse">${rows.join('')}</table>`,
    ...(button ? [button] : []),
    `<p style="color:#666;font-size:13px">${escaped(howToStop)}</p></body></html>`,
  ];
  const text = [summary, '', ...lines, '', ...(link ? [link, ''] : []), howToStop];
  return { subject: title, text: text.join('\n'), html: html.join('\n') };
}
