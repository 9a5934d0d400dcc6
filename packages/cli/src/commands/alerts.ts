/** Alerts of an account, over the API: admins write them, members read them. */
import { ALERT_MEASURES, ALERT_PERIODS, alertAmountText, MAX_THRESHOLD } from '@meterline/catalog';
import type { AlertChangeBody, AlertResponse, AlertWithSecretResponse, DeliveryResponse } from '@meterline/client';
import { type Command, Option } from 'commander';
import type { CommandContext } from '../command.js';
import { type AccountSession, withAccount } from '../connections/api.js';
import { usageError } from '../failure.js';
import { nameOf, type OutputFlags, wholeNumber, withApiFlags, withOutput } from '../flags.js';
import { requireConfirmation } from '../input.js';
import { type FilterFlags, withFilters } from '../metrics/query.js';
import { printResult } from '../output/result.js';
import { fieldLines, type ItemColumn, printable, printList } from '../output/table.js';
import { RepeatableOption } from '../repeated.js';
import { API_SETTINGS_HELP, type ApiFlags } from '../settings.js';

type AlertsFlags = ApiFlags & OutputFlags;

interface ChangeFlags extends AlertsFlags, FilterFlags, Pick<AlertChangeBody, 'period' | 'measure' | 'amount' | 'url'> {
  readonly name?: string;
  readonly threshold?: readonly number[];
  readonly rotateSecret?: true;
}
/** A command that was called, with the client of its account. */
interface Call<Flags extends AlertsFlags = AlertsFlags> extends AccountSession {
  readonly context: CommandContext;
  readonly flags: Flags;
  /** The id of an alert; empty where the command names none. */
  readonly id: string;
}

const COLUMNS: readonly ItemColumn<AlertResponse>[] = [
  { heading: 'ALERT', cell: ({ id }) => id },
  { heading: 'NAME', cell: ({ name }) => name, least: 8 },
  { heading: 'OF', cell: subjectOf, least: 8 },
  { heading: 'AMOUNT', cell: (alert) => alertAmountText(alert.amount, alert), isNumeric: true },
  { heading: 'THRESHOLDS', cell: ({ thresholds }) => percents(thresholds) },
  { heading: 'FIRED', cell: ({ fired }) => percents(fired.map(({ threshold }) => threshold)) || '-' },
];
const DELIVERY_COLUMNS: readonly ItemColumn<DeliveryResponse>[] = [
  { heading: 'DELIVERY', cell: ({ id }) => id },
  { heading: 'CREATED', cell: ({ createdAt }) => createdAt },
  { heading: 'OF', cell: ({ payload: { data } }) => (data.threshold === undefined ? 'test' : `${data.threshold}%`) },
  { heading: 'STATE', cell: ({ state }) => state },
  { heading: 'ATTEMPTS', cell: ({ attempts }) => String(attempts), isNumeric: true },
  { heading: 'LAST OUTCOME', cell: ({ lastOutcome = '' }) => lastOutcome, least: 8 },
];
const EXAMPLES = `
Examples:
  meterline alerts create --name 'Monthly spend' --period month --amount 100 --url https://example.com/webhooks
  meterline alerts create --name Agents --period day --measure usage --billing-dimension agent_async_requests_count \\
    --amount 50000 --threshold 100 --url https://example.com/webhooks`;

export function addAlerts(alerts: Command, context: CommandContext): void {
  alerts.description(
    'Alerts of an account: a signed webhook when a calendar day or month (UTC) has cost, or used, so much. Admins of the ' +
      'account make and change them, members see them.',
  );
  const add = (name: string, summary: string, description: string) => {
    const command = alerts.command(name).summary(summary).description(description);
    return withOutput(withApiFlags(command)).addHelpText('after', API_SETTINGS_HELP);
  };
  const addOfOne = (name: string, summary: string, description: string) =>
    add(name, summary, description).argument('<alertId>', 'as shown by list');
  const ofOne =
    <Flags extends AlertsFlags>(work: (call: Call<Flags>) => Promise<void>) =>
    (id: string, flags: Flags) =>
      withAccount(context, flags, (session) => work({ ...session, context, flags, id }));

  add('list', 'list the alerts', 'Lists the alerts, with what each has fired in its present period.').action(
    (flags: AlertsFlags) => ofOne(listAlerts)('', flags),
  );
  const create = add(
    'create',
    'create an alert; its secret is shown this once',
    'Creates an alert. Its filters are those of "metrics"; it has a secret, by which a receiver knows that a message is from here.',
  );
  withDefinition(create, true)
    .addHelpText('after', EXAMPLES)
    .action((flags: ChangeFlags) => ofOne(createAlert)('', flags));
  addOfOne('show', 'show an alert', 'Shows an alert with all that it has but its secret.').action(ofOne(showAlert));
  const update = addOfOne(
    'update',
    'change an alert, or give it a new secret',
    'Changes what is named; a filter replaces that of its name. A change of what is watched fires, once, for what is crossed already.',
  );
  withDefinition(update, false)
    .option('--rotate-secret', 'a new secret, shown once; old ones sign too for 24 hours')
    .action(ofOne(updateAlert));
  addOfOne('delete', 'delete an alert', 'Deletes an alert, after a typed "yes". What it has still to send is not sent.')
    .option('--yes', 'do not ask')
    .action(ofOne(deleteAlert));
  addOfOne('test', 'send a test', 'Sends a test; "deliveries" shows how it ended.').action(ofOne(testAlert));
  addOfOne('deliveries', 'list what was sent', 'Lists what an alert has sent, or has still to send, the newest first.')
    .option('--redeliver <deliveryId>', 'send this one again, with the same id')
    .action(ofOne(listDeliveries));
}

/** What an alert is about. @param isNew a new alert must have a name, a period, an amount and an address */
function withDefinition(command: Command, isNew: boolean): Command {
  const required = (flags: string, description: string) => new Option(flags, description).makeOptionMandatory(isNew);
  command
    .addOption(required('--name <name>', 'what messages call it').argParser(nameOf))
    .addOption(required('--period <period>', 'whose sum is watched, UTC').choices(ALERT_PERIODS))
    .addOption(required('--amount <amount>', 'what 100 percent is: USD, or usage in the unit of its dimension'))
    .addOption(required('--url <url>', 'where messages go, https'))
    .addOption(
      new Option('--measure <measure>', 'usage needs one --billing-dimension (default: cost)').choices(ALERT_MEASURES),
    )
    .addOption(
      new RepeatableOption(
        '--threshold <percent>',
        'fires at so many percent of the amount; may be repeated (default: 50, 80, 100)',
      ).argParser((text, before: readonly number[] = []) =>
        [...before, wholeNumber(text, 1, MAX_THRESHOLD)].sort((a, b) => a - b),
      ),
    );
  return withFilters(command);
}

/** Only what was named. */
function changeOf(flags: ChangeFlags): AlertChangeBody {
  const { name, period, measure, amount, url, threshold: thresholds, filter: filters } = flags;
  return { name, period, measure, amount, url, thresholds, filters };
}

async function listAlerts({ context, flags, client, account }: Call): Promise<void> {
  const items = await client.alerts.list(account);
  printList(context, flags, { columns: COLUMNS, items, none: 'No alerts.' });
}

async function createAlert(call: Call<ChangeFlags>): Promise<void> {
  const { name = '', period = 'month', measure = 'cost', amount = '', url = '', ...others } = changeOf(call.flags);
  print(call, await call.client.alerts.create(call.account, { ...others, name, period, measure, amount, url }));
}

async function showAlert(call: Call): Promise<void> {
  print(call, await call.client.alerts.get(call.account, call.id));
}

async function updateAlert(call: Call<ChangeFlags>): Promise<void> {
  const change = { ...changeOf(call.flags), rotateSecret: call.flags.rotateSecret };
  if (Object.values(change).every((value) => value === undefined)) throw usageError('name what is to change');
  const { client, account, id } = call;
  // The API takes all filters of an alert together.
  const { filters } = change.filters ? await client.alerts.get(account, id) : {};
  print(
    call,
    await client.alerts.update(account, id, { ...change, filters: filters && { ...filters, ...change.filters } }),
  );
}

async function deleteAlert({ context, flags, client, account, id }: Call<AlertsFlags & { yes?: boolean }>) {
  const { name } = await client.alerts.get(account, id);
  if (!flags.yes) await requireConfirmation(context, `Delete the alert ${printable(name)} for good? Type yes:`, 'yes');
  await client.alerts.delete(account, id);
  printResult(context, flags, { id, deleted: true }, `Deleted ${id}.`);
}

async function testAlert(call: Call): Promise<void> {
  printDeliveries(call, [await call.client.alerts.test(call.account, call.id)]);
}

async function listDeliveries(call: Call<AlertsFlags & { redeliver?: string }>): Promise<void> {
  const { client, account, id, flags } = call;
  if (flags.redeliver === undefined) printDeliveries(call, await client.alerts.deliveries(account, id));
  else printDeliveries(call, [await client.alerts.redeliver(account, id, flags.redeliver)]);
}

/** With its secret, where it has just been given one. */
function print({ context, flags }: Call, alert: AlertWithSecretResponse): void {
  const { id, name, amount, thresholds, fired, url, createdAt, updatedAt, secret } = alert;
  const lines = fieldLines([
    ['id', id],
    ['name', name],
    ['of', subjectOf(alert)],
    ['amount', alertAmountText(amount, alert)],
    ['thresholds', percents(thresholds)],
    ['url', url],
    ['created', createdAt],
    ['changed', updatedAt],
    ...fired.map(({ threshold, firedAt, value }) => {
      return ['fired', `${threshold}% at ${firedAt}, with ${alertAmountText(value, alert)}`] as const;
    }),
    ...(secret === undefined ? [] : [['secret', secret] as const]),
  ]);
  const end = secret === undefined ? [] : ['', 'Keep the secret now: it is not shown again.'];
  printResult(context, flags, alert, [...lines, ...end].join('\n'));
}

function printDeliveries({ context, flags }: Call, items: readonly DeliveryResponse[]): void {
  printList(context, flags, { columns: DELIVERY_COLUMNS, items, none: 'Nothing was sent yet.' });
}

/** `cost of a month, workspace=production`. */
function subjectOf({ measure, period, filters }: AlertResponse): string {
  const values = Object.entries(filters).flatMap(([name, value]) => [value].flat().map((each) => `${name}=${each}`));
  return [`${measure} of a ${period}`, ...values].join(', ');
}

function percents(thresholds: readonly number[]): string {
  return thresholds.map((threshold) => `${threshold}%`).join(', ');
}
