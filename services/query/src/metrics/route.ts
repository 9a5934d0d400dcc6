/** GET /v0/accounts/{accountId}/metrics */

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AnswerStamps, Role, Stamps } from '@meterline/access';
import {
  type AccountHandler,
  type Authenticate,
  applyVersion,
  oncePerTurn,
  rawQuery,
  requireAdmin,
  requireMembership,
  requireScope,
  sendJson,
  type UnsentBytes,
} from '@meterline/api';
import { GROUP_BY_DIMENSIONS } from '@meterline/catalog';
import type { Admission, Visit } from '../admission/admission.js';
import type { CursorBinding, CursorCodec } from '../http/cursor-codec.js';
import { type Answer, answerOf, plainBody, takesGzip } from './answer-body.js';
import type { KeptAnswers } from './kept-answers.js';
import { type MetricsPage, type MetricsPages, pagePosition } from './pages.js';
import { type MetricsRequest, parseMetricsRequest, readsWorkspaces } from './request.js';
import { metricsResponse, writeJson } from './response.js';

/** What decides whether a caller may ask about an account, and how often. */
export interface EntryDependencies {
  readonly admission: Admission;
  readonly authenticate: Authenticate;
}

interface MetricsRouteDependencies extends EntryDependencies {
  readonly answers: KeptAnswers;
  readonly cursors: CursorCodec;
  readonly pages: MetricsPages;
  readonly stamps: Pick<AnswerStamps, 'read'>;
  readonly unsent: UnsentBytes;
}

export function metricsRoute(dependencies: MetricsRouteDependencies): AccountHandler {
  const { admission, answers, authenticate, stamps } = dependencies;
  // Read once for all requests of one turn of the event loop, after the last of them has come.
  const readStamps = oncePerTurn(
    (account: string) => account,
    (account) => stamps.read(account),
  );
  return async (request, response, account) => {
    // Of every answer, as by the middleware that compresses; also of a 304 (RFC 9110, section 15.4.5).
    response.appendHeader('Vary', 'Accept-Encoding');
    const member = await requireMember(authenticate, request, response, account);
    const { party, role, version } = member;
    const text = rawQuery(request);
    const question = JSON.stringify([account, role, version, text]);
    // The stamps are read before ClickHouse is asked; of a request that takes no statement with the write that counts it.
    const [visit, read] = await Promise.all([
      admission.enter(party, response, !answers.has(question)),
      answers.isOn ? readStamps(account).outcome : undefined,
    ]);
    try {
      const asked = { member, visit, text, question, stamps: read };
      const answer = answers.find(question, read) ?? (await computeAnswer(dependencies, asked));
      visit.leave();
      await sendAnswer(dependencies, request, response, asked, answer);
    } finally {
      visit.leave();
    }
  };
}

async function sendAnswer(
  { answers, unsent }: MetricsRouteDependencies,
  request: IncomingMessage,
  response: ServerResponse,
  { member: { party }, question }: AskedMetrics,
  answer: Answer,
): Promise<void> {
  const isKnown = names(request.headers['if-none-match'], answer.etag);
  const isCompressed = !isKnown && takesGzip(request.headers);
  if (!isKnown) unsent.hold(request, response, party, answer.length);
  const sent = isCompressed ? await answers.compressed(question, answer) : answer;
  const body = isKnown || isCompressed ? sent.body : await plainBody(sent);
  // Only now, because an error has none of them. Kept by clients too, and asked about with If-None-Match each time.
  response.setHeader('ETag', answer.etag).setHeader('Cache-Control', 'private, no-cache');
  if (isKnown) {
    response.statusCode = 304;
    response.end();
  } else {
    if (isCompressed && sent.isCompressed) response.setHeader('Content-Encoding', 'gzip');
    sendJson(response, body);
  }
}

/**
 * Whether `If-None-Match` names an entity tag, weak or not (RFC 9110, section 13.1.2). Express' own comparison gives way to
 * `Cache-Control: no-cache`, which is for caches on the way, and which `fetch` adds to every condition.
 */
function names(condition: string | undefined, etag: string): boolean {
  return condition?.split(',').some((tag) => ['*', etag, etag.replace('W/', '')].includes(tag.trim())) ?? false;
}

interface AskedMetrics {
  readonly member: Member;
  readonly visit: Visit;
  /** The query string. */
  readonly text: string;
  /** By which its answer is kept: the query string, and what else an answer depends on. */
  readonly question: string;
  readonly stamps: Stamps | undefined;
}

/** The answer, computed, or taken from another request that computes it at the moment. */
async function computeAnswer(
  { answers, cursors, pages, unsent }: MetricsRouteDependencies,
  { member: { accountId, party, role }, visit, text, question, stamps }: AskedMetrics,
): Promise<Answer> {
  const query = parseMetricsRequest(text);
  const binding = cursorBinding(role, accountId, query);
  const position = query.cursor === '' ? undefined : cursors.open(query.cursor, binding, pagePosition);
  if (readsWorkspaces(query)) requireAdmin(role);
  unsent.requireRoom(party);

  // A member may not learn which workspaces there are.
  const asked = { ...query, hidesWorkspace: role !== 'admin' };
  const write = (page: MetricsPage) => {
    const nextCursor = page.next ? cursors.issue(binding, page.next, page.next.askedAt) : '';
    return answerOf(writeJson(metricsResponse(query, page, nextCursor)));
  };
  if (position) return write(await pages.next({ accountId, warehouse: await visit.turn() }, position, asked));

  const compute = async () => {
    const asker = { accountId, warehouse: await visit.turn(), stamp: stamps?.sealed };
    const page = await pages.first(asker, asked);
    return { answer: write(page), basis: page.isSealed ? ('sealed' as const) : ('any' as const) };
  };
  if (!stamps) return (await compute()).answer;
  const aim = JSON.stringify([question, stamps]);
  for (;;) {
    // What is under way has had its turn, so a request that waits for it needs none.
    const hasTurn = !answers.isUnderWay(question, stamps) && (await visit.turnFor(aim));
    if (answers.isUnderWay(question, stamps)) {
      visit.leave();
      const answer = await answers.join(question, stamps);
      if (answer) return answer;
      // Its client has gone. Of each caller one waits for a turn, and the first to get it computes it for all.
    } else {
      const kept = answers.find(question, stamps);
      if (kept) return kept;
      if (hasTurn) return answers.compute(question, stamps, compute);
    }
  }
}

/** A caller who may see the account. */
type Member = Awaited<ReturnType<typeof requireMember>>;

/**
 * Who asks, and whether they may.
 * @throws ApiError `unauthorized`, `invalid_api_version`, `insufficient_scope`, `forbidden`
 */
async function requireMember(
  authenticate: Authenticate,
  request: IncomingMessage,
  response: ServerResponse,
  accountId: string,
) {
  const caller = await authenticate(request);
  const version = applyVersion(request, response);
  requireScope(caller, 'admin');
  const role = requireMembership(caller, accountId);
  return { accountId, party: { account: accountId, caller: caller.id }, role, version };
}

/**
 * The first steps of every question about an account: who asks, whether they may, and that the request is counted.
 * @param asksWarehouse whether the visit will take a turn
 * @throws ApiError as {@link requireMember} does, and `too_many_requests`
 */
export async function enterAccount(
  { admission, authenticate }: EntryDependencies,
  request: IncomingMessage,
  response: ServerResponse,
  accountId: string,
  asksWarehouse: boolean,
) {
  const member = await requireMember(authenticate, request, response, accountId);
  const visit = await admission.enter(member.party, response, asksWarehouse);
  return { ...member, visit };
}

/**
 * Binds a cursor to account, role and every parameter but `limit`, in canonical form: neither the order of groupBy nor how a
 * time is written matters. To the role, because an admin's pages show what a member's do not; not to a key: anyone who may
 * ask the question may go on with its answer.
 */
function cursorBinding(role: Role, accountId: string, request: MetricsRequest): CursorBinding {
  const { window, resolution, groupBy, filters, excluded } = request;
  return [
    'metrics',
    accountId,
    role,
    [window.startTime, window.endTime],
    resolution,
    groupBy,
    // null in JSON where there is no filter.
    GROUP_BY_DIMENSIONS.map((dimension) => filters[dimension]),
    GROUP_BY_DIMENSIONS.map((dimension) => excluded[dimension]),
  ];
}
