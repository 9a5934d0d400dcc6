export { FairPermits, type PermitLimits, type Release } from './admission/fair-permits.js';
export {
  callerKey,
  type Principal,
  RateLimiter,
  type RateLimits,
  type RefusalObserver,
  refusalCounter,
} from './admission/rate-limits.js';
export {
  type ApplicationOptions,
  addErrorResponses,
  addReadRoute,
  addServiceRoutes,
  createApplication,
  READ,
  readSmallBodies,
} from './application.js';
export { type Authenticate, createAuthenticate } from './auth/authenticate.js';
export {
  type Caller,
  principalOf,
  requireAdmin,
  requireAdminAccounts,
  requireEmitter,
  requireMembership,
  requireReader,
  requireScope,
  requireWriter,
} from './auth/permissions.js';
export { METADATA_PATH, noTokens, type ProtectedResource } from './auth/protected-resource.js';
export { type ClaimPath, createTokenVerifier, type TokenVerifier, type TokenVerifierOptions } from './auth/tokens.js';
export {
  burstConstant,
  httpVariables,
  originsVariable,
  rateVariable,
  type TokenSettings,
  type TrustProxy,
  type WithTokens,
  withTokens,
} from './environment.js';
export { builtPage, createRedis, hostService } from './hosting.js';
export { errorBody, methodNotAllowed } from './http/error-responses.js';
export {
  ApiError,
  adminsOnly,
  authUnavailable,
  ClientGone,
  type ErrorCode,
  goneSignal,
  invalidBody,
  invalidParameters,
  notAMember,
  notFound,
  orAuthUnavailable,
  orUnavailable,
  type ParameterFault,
  RETRY_AFTER_SECONDS,
  tooManyRequests,
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
export { noteInLog, requestIdOf, requestMetrics, type Watcher } from './http/request-observation.js';
export { onResponseEnd, ResponseBudget } from './http/slow-readers.js';
export { assetRoute, embeddedPageRoute, pageRoute, pageSettingsRoute } from './http/web-page.js';
export {
  COMMON_ERRORS,
  COMMON_SCHEMAS,
  commonOperations,
  headerReference,
  LIMIT_HEADERS,
} from './openapi/common.js';
export {
  type OpenApiDocument,
  type OpenApiOperation,
  openApiDocument,
  schemaReference,
} from './openapi/document.js';
export type {
  ErrorSketch,
  OperationSketch,
  Parameter as OpenApiParameter,
  Response as OpenApiResponse,
} from './openapi/model.js';
export { type RunningServer, startServer } from './server.js';
