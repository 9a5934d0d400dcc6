/** The `meterline alerts` commands, through the API. */
import { ALERT_FORMATS, ALERT_MEASURES, ALERT_PERIODS, alertAmountText, MAX_THRESHOLD } from '@meterline/catalog';
import type {
  AlertChangeBody,
  AlertResponse,
  AlertWithSecretResponse,
  DeliveryResponse,
  NewAlertBody,
} from '@meterline/client';
import { type Command, Option } from 'commander';
import type { CommandContext } from '../../command.js';
import { type AccountSession, withAccount } from '../../connections/api.js';
import { usageError } from '../../failure.js';
import { nameOf, type OutputFlags, wholeNumber, withApiFlags, withOutput } from '../../flags.js';
import { requireConfirmation } from '../../input.js';
import { type FilterFlags, withAlertFilters } from '../../metrics/query.js';
import { printResult } from '../../output/result.js';
import { fieldLines, type ItemColumn, printable, printList } from '../../output/table.js';
import { RepeatableOption } from '../../repeated.js';
import { API_SETTINGS_HELP, type ApiFlags } from '../../settings.js';

type AlertsFlags = ApiFlags & OutputFlags;

type SameFlags = Pick<NewAlertBody, 'period' | 'measure' | 'amount' | 'forecast' | 'format' | 'url' | 'to'>;
interface ChangeFlags extends AlertsFlags, FilterFlags, Partial<SameFlags> {
  readonly name?: string;
  readonly threshold?: readonly number[];
  readonly rotateSecret?: true;
}
interface Call<Flags extends AlertsFlags = AlertsFlags> extends AccountSession {
  readonly context: CommandContext;
  readonly flags: Flags;
  /** The ID of an alert. Empty for commands without one, such as `list`. */
  readonly id: string;
}

const COLUMNS: readonly ItemColumn<AlertResponse>[] = [
  { heading: 'ALERT', cell: ({ id }) => id },
  { heading: 'NAME', cell: ({ name }) => name, minWidth: 8 },
  { heading: 'SUBJECT', cell: subjectOf, minWidth: 8 },
  { heading: 'AMOUNT', cell: (alert) => alertAmountText(alert.amount, alert), isNumeric: true },
  { heading: 'THRESHOLDS', cell: ({ thresholds, forecast }) => percents(thresholds, forecast) },
  { heading: 'FIRED', cell: firedOf },
];
const DELIVERY_COLUMNS: readonly ItemColumn<DeliveryResponse>[] = [
  { heading: 'DELIVERY', cell: ({ id }) => id },
  { heading: 'CREATED', cell: ({ createdAt }) => createdAt },
  { heading: 'FOR', cell: reasonOf },
  { heading: 'STATE', cell: ({ state }) => state },
  { heading: 'ATTEMPTS', cell: ({ attempts }) => String(attempts), isNumeric: true },
  { heading: 'LAST OUTCOME', cell: ({ lastOutcome = '' }) => lastOutcome, minWidth: 8 },
];
const EXAMPLES = `
Examples:
  meterline alerts create --name 'Monthly spend' --period month --amount 100 --url https://example.com/webhooks
  meterline alerts create --name Production --period month --amount 100 --forecast 100 --to ops@example.com --workspace production
  meterline alerts create --name Agents --period day --measure usage --billing-dimension agent_async_requests_count \\
    --amount 50000 --threshold 100 --url https://example.com/webhooks`;

export function addAlerts(alerts: Command, context: CommandContext): void {
  alerts.description(
    'Manage alerts. An alert sends a signed webhook, a message to Slack or Microsoft Teams, or e-mails when the spend or usage of an ' +
      'account in a calendar day or month (UTC) passes a threshold. Admins of the account create and change alerts; members can list them.',
  );
  const add = (name: string, summary: string, description: string) => {
    const command = alerts.command(name).summary(summary).description(description);
    return withOutput(withApiFlags(command)).addHelpText('after', API_SETTINGS_HELP);
  };
  const addWithId = (name: string, summary: string, description: string) =>
    add(name, summary, description).argument('<alertId>', 'Alert ID, from "alerts list"');
  const action =
    <Flags extends AlertsFlags>(work: (call: Call<Flags>) => Promise<void>) =>
    (id: string, flags: Flags) =>
      withAccount(context, flags, (session) => work({ ...session, context, flags, id }));

  add('list', 'List alerts', 'List alerts, with the thresholds that fired in the current period.').action(
    (flags: AlertsFlags) => action(listAlerts)('', flags),
  );
  const create = add(
    'create',
    'Create an alert',
    'Create an alert, with --url or --to. The output includes the secret with which receivers verify signed webhooks; the secret is ' +
      'shown only once.',
  );
  withDefinition(create, true)
    .addHelpText('after', EXAMPLES)
    .action((flags: ChangeFlags) => action(createAlert)('', flags));
  addWithId('show', 'Show an alert', 'Show an alert, without its secret.').action(action(showAlert));
  const update = addWithId(
    'update',
    'Change an alert or rotate its secret',
    'Change the given fields of an alert; a filter replaces earlier filters with the same name. If the change affects the measured ' +
      'amount or the thresholds, thresholds that are already passed fire once.',
  );
  withDefinition(update, false)
    .option('--rotate-secret', 'Create a new secret, shown once; earlier secrets stay valid for 24 hours')
    .action(action(updateAlert));
  addWithId('delete', 'Delete an alert', 'Delete an alert and its pending deliveries, after confirmation.')
    .option('--yes', 'Skip the confirmation')
    .action(action(deleteAlert));
  addWithId('test', 'Send a test', 'Send a test. "alerts deliveries" shows its outcome.').action(action(testAlert));
  addWithId('deliveries', 'List deliveries of an alert', 'List sent and pending deliveries of an alert, newest first.')
    .option('--redeliver <deliveryId>', 'Send this delivery again, with the same ID')
    .action(action(listDeliveries));
}

/** Adds the flags that define an alert. @param isNew requires name, period and amount, and adds --format, which cannot be changed later */
function withDefinition(command: Command, isNew: boolean): Command {
  const required = (flags: string, description: string) =>
    new Option(flags, isNew ? `${description} (required)` : description).makeOptionMandatory(isNew);
  const byDefault = (text: string) => (isNew ? ` (default: ${text})` : '');
  command
    .addOption(required('--name <name>', 'Alert name').argParser(nameOf))
    .addOption(
      required('--period <period>', 'Period that the alert covers: a calendar day or month in UTC').choices(
        ALERT_PERIODS,
      ),
    )
    .addOption(
      required(
        '--amount <amount>',
        'Budget that thresholds are percentages of: USD, or units of the billing dimension with --measure usage',
      ),
    )
    .option('--url <url>', 'HTTPS URL that receives webhooks, or the incoming-webhook URL of Slack or Microsoft Teams')
    .addOption(
      new RepeatableOption('--to <address>', 'E-mail address, instead of --url; repeatable').argParser(
        (text, before: readonly string[] = []) => [...before, text],
      ),
    )
    .addOption(
      new Option(
        '--measure <measure>',
        `Measure cost, or usage of one --billing-dimension${byDefault('cost')}`,
      ).choices(ALERT_MEASURES),
    )
    .addOption(
      new RepeatableOption(
        '--threshold <percent>',
        `Percentage of the amount at which the alert fires; repeatable${byDefault('50, 80, 100')}`,
      ).argParser(percentsOf),
    )
    .addOption(
      new RepeatableOption(
        '--forecast <percent>',
        'Percentage of the amount at which the alert fires when the forecast of the month reaches it; repeatable',
      ).argParser(percentsOf),
    );
  if (isNew) {
    const format = new Option('--format <format>', 'What the URL receives (default: standard, a signed webhook)');
    command.addOption(format.choices(ALERT_FORMATS));
  }
  return withAlertFilters(command);
}

function percentsOf(text: string, before: readonly number[] = []): readonly number[] {
  return [...before, wholeNumber(text, 1, MAX_THRESHOLD)].sort((a, b) => a - b);
}

function changeOf(flags: ChangeFlags): AlertChangeBody {
  const { name, period, measure, amount, url, to, threshold: thresholds, forecast, filter: filters } = flags;
  return { name, period, measure, amount, url, to, thresholds, forecast, filters };
}

async function listAlerts({ context, flags, client, account }: Call): Promise<void> {
  const items = await client.alerts.list(account);
  printList(context, flags, { columns: COLUMNS, items, none: 'No alerts.' });
}

async function createAlert(call: Call<ChangeFlags>): Promise<void> {
  const { name = '', period = 'month', measure = 'cost', amount = '', ...others } = changeOf(call.flags);
  const { format } = call.flags;
  const body = { ...others, name, period, measure, amount, format };
  printAlert(call, await call.client.alerts.create(call.account, body));
}

async function showAlert(call: Call): Promise<void> {
  printAlert(call, await call.client.alerts.get(call.account, call.id));
}

async function updateAlert(call: Call<ChangeFlags>): Promise<void> {
  const change = { ...changeOf(call.flags), rotateSecret: call.flags.rotateSecret };
  if (Object.values(change).every((value) => value === undefined))
    throw usageError('nothing to change: use at least one flag, such as --amount');
  const { client, account, id } = call;
  // Send the current filters as well, because the API replaces all filters of an alert at once.
  const { filters } = change.filters ? await client.alerts.get(account, id) : {};
  printAlert(
    call,
    await client.alerts.update(account, id, { ...change, filters: filters && { ...filters, ...change.filters } }),
  );
}

async function deleteAlert({ context, flags, client, account, id }: Call<AlertsFlags & { yes?: boolean }>) {
  const { name } = await client.alerts.get(account, id);
  if (!flags.yes)
    await requireConfirmation(context, `Delete the alert ${printable(name)} permanently? Type yes:`, 'yes');
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

/** Prints an alert. Includes the signing secret if the API returned a new one. */
function printAlert({ context, flags }: Call, alert: AlertWithSecretResponse): void {
  const { id, name, amount, thresholds, forecast, fired, forecastFired, createdAt, updatedAt, secret } = alert;
  const lines = fieldLines([
    ['id', id],
    ['name', name],
    ['subject', subjectOf(alert)],
    ['amount', alertAmountText(amount, alert)],
    ['thresholds', percents(thresholds)],
    ...(forecast.length > 0 ? [['forecast', percents(forecast)] as const] : []),
    ['target', targetOf(alert)],
    ['created', createdAt],
    ['changed', updatedAt],
    ...fired.map(({ threshold, firedAt, value }) => {
      return ['fired', `${threshold}% at ${firedAt}, with ${alertAmountText(value, alert)}`] as const;
    }),
    ...forecastFired.map(({ threshold, firedAt, forecast }) => {
      return ['fired', `forecast of ${threshold}% at ${firedAt}, with ${alertAmountText(forecast, alert)}`] as const;
    }),
    ...(secret === undefined ? [] : [['secret', secret] as const]),
  ]);
  const end = secret === undefined ? [] : ['', 'Save the secret now: it is not shown again.'];
  printResult(context, flags, alert, [...lines, ...end].join('\n'));
}

function printDeliveries({ context, flags }: Call, items: readonly DeliveryResponse[]): void {
  printList(context, flags, { columns: DELIVERY_COLUMNS, items, none: 'No deliveries.' });
}

function subjectOf({ measure, period, filters }: AlertResponse): string {
  const values = Object.entries(filters).flatMap(([name, value]) => [value].flat().map((each) => `${name}=${each}`));
  return [`${measure} per ${period}`, ...values].join(', ');
}

function targetOf({ format = 'standard', url = '', to }: AlertResponse): string {
  return to?.join(', ') ?? (format === 'standard' ? url : `${url} (${format})`);
}

function reasonOf({ payload: { data }, to }: DeliveryResponse): string {
  const reason =
    data.threshold === undefined ? 'test' : `${data.forecast === undefined ? '' : 'forecast '}${data.threshold}%`;
  return to === undefined ? reason : `${reason} to ${to}`;
}

function firedOf({ fired, forecastFired }: AlertResponse): string {
  const [reached, foreseen] = [fired, forecastFired].map((each) => each.map(({ threshold }) => threshold));
  return percents(reached, foreseen) || '-';
}

function percents(thresholds: readonly number[] = [], forecast: readonly number[] = []): string {
  return [...thresholds.map((each) => `${each}%`), ...forecast.map((each) => `forecast ${each}%`)].join(', ');
}
