/**
 * Serves /v0/accounts/{accountId}/views, an extension of the platform's API: the saved views of an account. Admins read and write. Members
 * only read, and do not see views that group or filter by workspace, because workspaces are hidden from members.
 */
import { invalidParameters, orAuthUnavailable, rawQuery, requireNoParameters } from '@meterline/api';
import {
  NO_ACCOUNT_PATH,
  nameText,
  readViewQuery,
  showsWorkspaces,
  VIEW_LIST_PARAMETERS,
  viewBodySchema,
} from '@meterline/catalog';
import type { Role } from '@meterline/service/access';
import { type SavedView, TooManyViews } from '@meterline/service/views';
import type { RequestHandler } from 'express';
import { parseBody } from '../http/body.js';
import { noSuchView, tooManyViews } from '../http/errors.js';
import { admitMember, admitWriter, type Requires } from '../http/member.js';
import { listResponse, parseListRequest } from '../http/paging.js';

type RouteDependencies = Requires<'clock' | 'cursors' | 'views'>;
type AccountPath = { accountId: string };
type ViewPath = AccountPath & { name: string };

const EXAMPLE = { query: 'period=month&group=resource_type' };

export function viewListRoute(dependencies: RouteDependencies): RequestHandler<AccountPath> {
  const { cursors, views } = dependencies;
  return async (request, response) => {
    const { accountId } = request.params;
    const { role, version } = await admitMember(dependencies, request, response, accountId);
    const list = parseListRequest(rawQuery(request), version, VIEW_LIST_PARAMETERS);
    const visible = (await orAuthUnavailable(views.listOf(accountId))).filter((view) => maySee(role, view));
    response.json(listResponse(visible, list, ['views', accountId, role], cursors));
  };
}

export function viewRoute(dependencies: RouteDependencies): RequestHandler<ViewPath> {
  return async (request, response) => {
    const { accountId, name } = request.params;
    const { role } = await admitMember(dependencies, request, response, accountId);
    requireNoParameters(rawQuery(request));
    const view = await orAuthUnavailable(dependencies.views.find(accountId, name));
    if (!view || !maySee(role, view)) throw noSuchView();
    response.json(view);
  };
}

export function viewSavingRoute(dependencies: RouteDependencies): RequestHandler<ViewPath> {
  const { clock, views } = dependencies;
  return async (request, response) => {
    const { accountId, name } = request.params;
    await admitWriter(dependencies, request, response);
    requireViewName(name);
    const { query } = parseBody(request.body, viewBodySchema, EXAMPLE);
    const saving = views.save(accountId, name, query, clock()).catch(rejectTooMany);
    response.json(await orAuthUnavailable(saving));
  };
}

export function viewDeletionRoute(dependencies: RouteDependencies): RequestHandler<ViewPath> {
  return async (request, response) => {
    const { accountId, name } = request.params;
    await admitWriter(dependencies, request, response);
    if (!(await orAuthUnavailable(dependencies.views.remove(accountId, name)))) throw noSuchView();
    response.status(204).end();
  };
}

function maySee(role: Role, { query }: SavedView): boolean {
  return role === 'admin' || !showsWorkspaces(readViewQuery(new URLSearchParams(query)));
}

/** Names are part of URLs, so `.` and `..` are not allowed. */
function requireViewName(name: string): void {
  const parsed = nameText.safeParse(name);
  const problem = NO_ACCOUNT_PATH.test(name) ? 'must not be "." or ".."' : parsed.error?.issues[0]?.message;
  if (problem !== undefined) throw invalidParameters([{ parameter: 'name', message: `name ${problem}.` }]);
}

function rejectTooMany(error: unknown): never {
  throw error instanceof TooManyViews ? tooManyViews() : error;
}
