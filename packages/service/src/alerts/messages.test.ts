import { expect, it } from '@jest/globals';
import { ALERT_SETTINGS } from '../../../../test/harness/alerts.js';
import { readView } from '../../../dashboard/src/view/address.js';
import { type Alert, type AlertSettings, type Fired, newRecord, periodAt } from './alert.js';
import { mailBody, messageBody } from './messages.js';

const NOW = new Date('2026-11-24T09:00:20Z');
const PAGE = 'https://billing.example.com/meters';
/** A name with the markup of HTML, Slack and Markdown. */
const NAME = '<!channel> & [x](https://evil.example) <b>*';
const NOVEMBER = periodAt('month', NOW.getTime());
const REACHED = { threshold: 80, value: '80.000000115', firedAt: NOW.toISOString() };
const FORECAST = { ...REACHED, threshold: 100, forecast: '131.333333333334' };

function alertOf(change: Partial<AlertSettings>): Alert {
  const filters: AlertSettings['filters'] = { workspace: ['a&b'], resourceType: ['job', 'agent'] };
  return { id: 'alr_1', ...newRecord('acme', { ...ALERT_SETTINGS, name: NAME, filters, ...change }, NOW) };
}
const bodyOf = (change: Partial<AlertSettings>, fired?: Fired) =>
  messageBody(alertOf(change), NOVEMBER, PAGE, fired) ?? '';
const mailOf = (fired?: Fired) => mailBody.parse(JSON.parse(bodyOf({ url: undefined, to: ['a@example.com'] }, fired)));

const LINK = `${PAGE}/?account=acme&from=2026-11-01T00%3A00%3A00Z&to=2026-12-01T00%3A00%3A00Z&workspace=a%26b&type=agent&type=job`;
const STOP = 'To stop these messages, ask an admin of the account acme to';

it('a signed webhook has no other body than its payload', () => {
  expect(messageBody(alertOf({}), NOVEMBER, PAGE, REACHED)).toBeUndefined();
});

it('a mail has the figure, the threshold, the link and how to stop it in both parts, and shows names as they are', () => {
  const { subject, text, html } = mailOf(REACHED);
  expect(subject).toBe(`${NAME}: 80% of $100.00 reached`);
  expect(text.split('\n')).toEqual([
    ...['Cost in November 2026 has reached 80% of $100.00.', ''],
    ...[
      'Account: acme',
      `Alert: ${NAME}`,
      'Cost so far: $80.00',
      'Threshold: 80% of $100.00',
      'Period: November 2026 (UTC)',
    ],
    ...['', LINK, '', `${STOP} remove your address from the alert, or to delete the alert alr_1.`],
  ]);
  const shown = html
    .replace(/<[^>]+>/g, '\n')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&');
  for (const expected of [subject, 'acme', NAME, '$80.00', '80% of $100.00', 'November 2026 (UTC)', STOP]) {
    expect(shown).toContain(expected);
  }
  expect(html).toContain(`href="${LINK.replaceAll('&', '&amp;')}"`);
  expect(html).not.toContain('<b>');
});

it('a mail about the forecast says that it is one, and a test that it is a test', () => {
  expect(mailOf(FORECAST)).toMatchObject({
    subject: `${NAME}: forecast to reach 100% of $100.00`,
    text: expect.stringMatching(
      /^This is a forecast: by the end of November 2026, cost .*\n(.*\n)+Forecast: \$131.33\n/,
    ),
  });
  const { subject, text } = mailOf();
  expect([subject, text]).toEqual([
    `Test of the alert ${NAME}`,
    expect.stringMatching(/^This is a test\.(.*\n)+Amount: \$100.00\n/),
  ]);
});

it('usage has its unit, and a day its date', () => {
  const day = periodAt('day', NOW.getTime());
  const alert = alertOf({
    ...{ measure: 'usage', period: 'day', filters: { billingDimension: ['agent_async_requests_count'] } },
    ...{ url: undefined, to: ['a@example.com'] },
  });
  expect(messageBody(alert, day, PAGE, { ...REACHED, value: '80' })).toContain(
    'Usage so far: 80 events\\nThreshold: 80% of 100 events\\nPeriod: 2026-11-24 (UTC)',
  );
});

it('the link shows the account, the period and the filters of the alert on the page', () => {
  expect(readView(new URL(LINK).search)).toMatchObject({
    ...{ account: 'acme', measure: 'cost', period: { from: NOVEMBER.startTime, to: NOVEMBER.endTime } },
    filters: { workspace: { values: ['a&b'] }, resourceType: { values: ['agent', 'job'] } },
  });
});

it('a message has no link if the address of the page is not known, or if the link would be too long', () => {
  const workspace = Array.from({ length: 50 }, (_, n) => `workspace-${n}-${'x'.repeat(40)}`);
  for (const format of ['slack', 'teams'] as const) {
    expect(bodyOf({ format }, REACHED)).toContain('Show the usage');
    expect(bodyOf({ format, filters: { workspace } }, REACHED)).not.toContain('Show the usage');
    expect(messageBody(alertOf({ format }), NOVEMBER, undefined, REACHED)).not.toContain('Show the usage');
  }
});

it('a message to Slack is a text with blocks, in which names mention nobody', () => {
  const name = '&lt;!channel&gt; &amp; [x](https://evil.example) &lt;b&gt;*';
  const mrkdwn = (text: string) => ({ type: 'mrkdwn', text });
  const section = (text: string) => ({ type: 'section', text: mrkdwn(text) });
  const title = `${name}: 80% of $100.00 reached`;
  const summary = 'Cost in November 2026 has reached 80% of $100.00.';
  expect(JSON.parse(bodyOf({ format: 'slack' }, REACHED))).toEqual({
    text: `${title}. ${summary}`,
    blocks: [
      section(`*${title}*\n${summary}`),
      {
        type: 'section',
        fields: [
          ...[mrkdwn('*Account*\nacme'), mrkdwn(`*Alert*\n${name}`), mrkdwn('*Cost so far*\n$80.00')],
          ...[mrkdwn('*Threshold*\n80% of $100.00'), mrkdwn('*Period*\nNovember 2026 (UTC)')],
        ],
      },
      section(`<${LINK.replaceAll('&', '&amp;')}|Show the usage>`),
      { type: 'context', elements: [mrkdwn(`${STOP} delete the alert alr_1.`)] },
    ],
  });
});

it('a message to Teams is an Adaptive Card, whose texts are not Markdown', () => {
  const { type, attachments } = JSON.parse(bodyOf({ format: 'teams' }, FORECAST));
  expect([type, attachments]).toMatchObject(['message', [{ contentType: 'application/vnd.microsoft.card.adaptive' }]]);
  const { body, actions, ...card } = attachments[0].content;
  expect(card).toEqual({
    ...{ $schema: 'http://adaptivecards.io/schemas/adaptive-card.json', type: 'AdaptiveCard', version: '1.2' },
  });
  expect(new Set(body.map((block: { type: string }) => block.type))).toEqual(new Set(['RichTextBlock']));
  const texts = body.map(({ inlines }: { inlines: { text: string }[] }) => inlines.map(({ text }) => text).join(''));
  expect(texts).toEqual([
    `${NAME}: forecast to reach 100% of $100.00`,
    'This is a forecast: by the end of November 2026, cost is expected to reach 100% of $100.00.',
    ...['Account: acme', `Alert: ${NAME}`, 'Cost so far: $80.00', 'Forecast: $131.33', 'Threshold: 100% of $100.00'],
    ...['Period: November 2026 (UTC)', `${STOP} delete the alert alr_1.`],
  ]);
  expect(actions).toEqual([{ type: 'Action.OpenUrl', title: 'Show the usage', url: LINK }]);
});
