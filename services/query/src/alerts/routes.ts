/**
 * Serves /v0/accounts/{accountId}/alerts, an extension of the platform's API: an account's alerts and their deliveries (webhooks, e-mails).
 * Admins read and write. Members only read, and do not see alerts that filter by workspace, because workspaces are hidden from members.
 */
import {
  invalidBody,
  mayWrite,
  orAuthUnavailable,
  type ParameterProblem,
  rawQuery,
  requireNoParameters,
} from '@meterline/api';
import {
  ALERT_LIST_PARAMETERS,
  alertChangeSchema,
  DELIVERY_LIST_PARAMETERS,
  decimalText,
  newAlertSchema,
} from '@meterline/catalog';
import type { Role } from '@meterline/service/access';
import {
  type Alert,
  type Delivery,
  type Fired,
  isSigned,
  messageBody,
  periodAt,
  settingsOf,
  TooManyAlerts,
  webhookPayload,
} from '@meterline/service/alerts';
import type { Request, RequestHandler, Response } from 'express';
import { parseBody } from '../http/body.js';
import { noSuchAlert, noSuchDelivery, tooManyAlerts } from '../http/errors.js';
import { admitMember, admitWriter, type Requires } from '../http/member.js';
import { listResponse, parseListRequest } from '../http/paging.js';
import { type ExactJson, exactNumber, RawJson, writeJson } from '../metrics/response.js';
import { changeProblems, definitionProblems, targetProblems, targetUrl } from './checks.js';

type RouteDependencies = Requires<'alerts' | 'allowedHosts' | 'clock' | 'cursors' | 'pageUrl' | 'sendsMail'>;

type AccountPath = { accountId: string };
type AlertPath = AccountPath & { alertId: string };
type DeliveryPath = AlertPath & { deliveryId: string };

const EXAMPLE = {
  name: 'Monthly spend',
  period: 'month',
  measure: 'cost',
  amount: '100',
  url: 'https://example.com/hooks',
};

export function alertListRoute(dependencies: RouteDependencies): RequestHandler<AccountPath> {
  const { alerts, cursors } = dependencies;
  return async (request, response) => {
    const { accountId } = request.params;
    const { caller, role, version } = await admitMember(dependencies, request, response, accountId);
    const listRequest = parseListRequest(rawQuery(request), version, ALERT_LIST_PARAMETERS);
    const visible = (await orAuthUnavailable(alerts.listOf(accountId))).filter((alert) => maySee(role, alert));
    const entries = await Promise.all(
      visible.map((alert) => alertEntry(dependencies, alert, mayWrite(caller, accountId))),
    );
    send(response, listResponse(entries, listRequest, ['alerts', accountId, role], cursors));
  };
}

export function alertCreationRoute(dependencies: RouteDependencies): RequestHandler<AccountPath> {
  const { alerts, allowedHosts, clock } = dependencies;
  return async (request, response) => {
    const { accountId } = request.params;
    await admitWriter(dependencies, request, response);
    const settings = parseBody(request.body, newAlertSchema.extend({ url: targetUrl(allowedHosts) }), EXAMPLE);
    rejectProblems([...definitionProblems(settings), ...targetProblems(settings, dependencies)]);
    const alert = await orAuthUnavailable(alerts.create(accountId, settings, clock()).catch(rejectTooMany));
    response.status(201).location(`alerts/${alert.id}`);
    send(response, { ...(await alertEntry(dependencies, alert, true)), secret: alert.secret });
  };
}

export function alertRoute(dependencies: RouteDependencies): RequestHandler<AlertPath> {
  return async (request, response) => {
    const { alert, caller } = await admitReader(dependencies, request, response);
    requireNoParameters(rawQuery(request));
    send(response, await alertEntry(dependencies, alert, mayWrite(caller, alert.account)));
  };
}

export function alertChangeRoute(dependencies: RouteDependencies): RequestHandler<AlertPath> {
  const { alerts, allowedHosts, clock } = dependencies;
  return async (request, response) => {
    await admitWriter(dependencies, request, response);
    const { id } = await findAlert(dependencies, request.params, 'admin');
    const change = parseBody(request.body, alertChangeSchema.extend({ url: targetUrl(allowedHosts) }), {
      amount: '200',
    });
    const check = (alert: Alert) =>
      rejectProblems([...definitionProblems(alert), ...changeProblems(change, alert, dependencies)]);
    const alert = await orAuthUnavailable(alerts.change(id, change, clock(), check));
    if (!alert) throw noSuchAlert();
    const entry = await alertEntry(dependencies, alert, true);
    send(response, change.rotateSecret ? { ...entry, secret: alert.secret } : entry);
  };
}

export function alertDeletionRoute(dependencies: RouteDependencies): RequestHandler<AlertPath> {
  return async (request, response) => {
    await admitWriter(dependencies, request, response);
    const alert = await findAlert(dependencies, request.params, 'admin');
    await orAuthUnavailable(dependencies.alerts.remove(alert));
    response.status(204).end();
  };
}

export function alertTestRoute(dependencies: RouteDependencies): RequestHandler<AlertPath> {
  const { alerts, clock, pageUrl } = dependencies;
  return async (request, response) => {
    await admitWriter(dependencies, request, response);
    const alert = await findAlert(dependencies, request.params, 'admin');
    const now = clock();
    const period = periodAt(alert.period, now.getTime());
    const payload = webhookPayload(alert, 'alert.test', period, now.getTime());
    const body = messageBody(alert, period, pageUrl);
    const delivery = await orAuthUnavailable(alerts.deliveries.addTest(alert, now, payload, body));
    send(response.status(202), deliveryEntry(delivery));
  };
}

export function deliveryListRoute(dependencies: RouteDependencies): RequestHandler<AlertPath> {
  const { alerts, clock, cursors } = dependencies;
  return async (request, response) => {
    const { alert, caller, role, version } = await admitReader(dependencies, request, response);
    const listRequest = parseListRequest(rawQuery(request), version, DELIVERY_LIST_PARAMETERS);
    const all = await orAuthUnavailable(alerts.deliveries.listOf(alert.account, alert.id, clock()));
    const read = async (entries: readonly { id: string }[]) =>
      (await orAuthUnavailable(Promise.all(entries.map(({ id }) => alerts.deliveries.find(id))))).flatMap(
        (delivery) => delivery ?? [],
      );
    const visible = role === 'admin' ? all : (await read(all)).filter(({ seenBy }) => seenBy === role);
    const list = listResponse(visible, listRequest, ['deliveries', alert.id], cursors);
    const isWriter = mayWrite(caller, alert.account);
    const shown = async (page: readonly { id: string }[]) =>
      (await read(page)).map((delivery) => deliveryEntry(delivery, isWriter));
    send(response, 'data' in list ? { ...list, data: await shown(list.data) } : await shown(list));
  };
}

export function redeliveryRoute(dependencies: RouteDependencies): RequestHandler<DeliveryPath> {
  const { deliveries } = dependencies.alerts;
  return async (request, response) => {
    await admitWriter(dependencies, request, response);
    const { id: alertId } = await findAlert(dependencies, request.params, 'admin');
    const delivery = await orAuthUnavailable(deliveries.find(request.params.deliveryId));
    if (delivery?.alertId !== alertId || !(await orAuthUnavailable(deliveries.redeliver(delivery.id)))) {
      throw noSuchDelivery();
    }
    send(response.status(202), deliveryEntry({ ...delivery, state: 'pending' }));
  };
}

async function admitReader(dependencies: RouteDependencies, request: Request<AlertPath>, response: Response) {
  const admission = await admitMember(dependencies, request, response, request.params.accountId);
  return { ...admission, alert: await findAlert(dependencies, request.params, admission.role) };
}

async function findAlert({ alerts }: RouteDependencies, { accountId, alertId }: AlertPath, role: Role): Promise<Alert> {
  const alert = await orAuthUnavailable(alerts.find(alertId));
  if (alert?.account !== accountId || !maySee(role, alert)) throw noSuchAlert();
  return alert;
}

function maySee(role: Role, { filters }: Alert): boolean {
  return role === 'admin' || filters.workspace === undefined;
}

function rejectProblems(problems: readonly ParameterProblem[]): void {
  if (problems.length > 0) throw invalidBody(problems);
}

function rejectTooMany(error: unknown): never {
  throw error instanceof TooManyAlerts ? tooManyAlerts() : error;
}

/** @param isWriter if false, the URL is reduced to its origin, because its path and query may contain a secret, and addresses are masked */
async function alertEntry({ alerts, clock }: RouteDependencies, alert: Alert, isWriter: boolean) {
  const { startTime } = periodAt(alert.period, clock().getTime());
  const fired = await orAuthUnavailable(alerts.firedOf(alert, startTime));
  const { id, createdAt, updatedAt, to, url } = alert;
  const entryOf = ({ value, forecast, ...mark }: Fired) => {
    const exact = forecast === undefined ? {} : { forecast: exactNumber(decimalText(forecast)) };
    return { ...mark, value: exactNumber(decimalText(value)), ...exact };
  };
  return {
    id,
    ...settingsOf(alert),
    ...(to && !isWriter && { to: to.map(maskedAddress) }),
    ...(url !== undefined && !(isWriter && isSigned(alert)) && { url: new URL(url).origin }),
    ...{ createdAt, updatedAt },
    fired: fired.filter(({ forecast }) => forecast === undefined).map(entryOf),
    forecastFired: fired.filter(({ forecast }) => forecast !== undefined).map(entryOf),
  };
}

/** @param isWriter if false, the e-mail address is masked, because addresses are personal data */
function deliveryEntry(
  { account, alertId, type, failures, seenBy, payload, body, to, ...delivery }: Delivery,
  isWriter = true,
) {
  const shown = to === undefined ? {} : { to: isWriter ? to : maskedAddress(to) };
  return { ...delivery, ...shown, payload: new RawJson(payload) };
}

function maskedAddress(address: string): string {
  return `…${address.slice(address.lastIndexOf('@'))}`;
}

function send(response: Response, value: ExactJson): void {
  response.type('json').send(writeJson(value));
}
