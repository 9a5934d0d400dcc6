export { limitField, type Policy, policyField, type RateStates } from './admission/limits.js';
export { type RefusalObserver, refusalCounter } from './admission/metrics.js';
export { accountKey, callerKey, type Party } from './admission/party.js';
export { isRefused, RateGate, type RateGateOptions } from './admission/rate-gate.js';
export { LEASE_MS, type Lease, type PartyLimits, type RateLimit, SharedLimits } from './admission/shared-limits.js';
export {
  type ApplicationOptions,
  addErrorAnswers,
  addServiceRoutes,
  createApplication,
  READ,
  readSmallBodies,
} from './application.js';
export type { ClaimPath } from './auth/account-claims.js';
export {
  type Authenticate,
  type Caller,
  createAuthenticate,
  partyOf,
  requireAdmin,
  requireAdminAccounts,
  requireEmitter,
  requireMembership,
  requireReader,
  requireScope,
} from './auth/authenticate.js';
export { METADATA_PATH, type ProtectedResource } from './auth/protected-resource.js';
export type { TokenVerifier, TokenVerifierOptions } from './auth/token-verifier.js';
export { type AccountHandler, withDirectRoute } from './direct-route.js';
export {
  httpVariables,
  requireAllOrNone,
  type TokenSettings,
  type TrustProxy,
  type WithTokens,
  withTokens,
} from './environment.js';
export { builtPage, listen, logMalformedKey, openAdminPort, openTokenVerifier } from './hosting.js';
export { ClientGone, goneSignal } from './http/client-gone.js';
export { errorBody, methodNotAllowed } from './http/error-answers.js';
export {
  ApiError,
  accessDenied,
  authUnavailable,
  type ErrorCode,
  invalidBody,
  invalidParameters,
  notFound,
  orAuthUnavailable,
  orUnavailable,
  type ParameterFault,
  RETRY_AFTER_SECONDS,
  unauthorized,
  unavailable,
} from './http/errors.js';
export { fullRedis, type ReadinessCheck, UnfitServer } from './http/health.js';
export {
  type ParameterRules,
  QueryParameters,
  quoted,
  refuseParameters,
  shortened,
  WORKSPACE_IGNORED,
} from './http/query-parameters.js';
export { applyVersion, rawQuery } from './http/request-checks.js';
export { noteInLog, requestIdOf, requestMetrics, requestSpans, type Watcher } from './http/request-observation.js';
export { onAnswerEnd, sendJson, UnsentBytes } from './http/unread-answers.js';
export { pageRoute, pageSettingsRoute } from './http/web-page.js';
export { oncePerTurn } from './once-per-turn.js';
export { type OperationSketch, openApiDocument } from './openapi/document.js';
export { healthOperation } from './openapi/health.js';
export type {
  Example,
  Examples,
  JsonSchema,
  OpenApiDocument,
  Operation,
  OperationExample,
  Reference,
  Response as OpenApiResponse,
} from './openapi/model.js';
export { exampleRequests, requestTarget, successOf } from './openapi/requests.js';
export { protectedResourceSchema, resourceMetadataOperation } from './openapi/resource-metadata.js';
export {
  COMMON_RESPONSES,
  errorResponse,
  headerReference,
  LIMIT_HEADERS,
  responseReference,
} from './openapi/responses.js';
export { componentSchemas, schemaReference } from './openapi/schemas.js';
export { createRedis, watchOutages } from './redis-connection.js';
export { codeOf } from './reference/code.js';
export { type RunningServer, startServer } from './server.js';
