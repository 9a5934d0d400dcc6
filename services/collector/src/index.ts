export { eventIdOf, eventIdOfCloudEvent } from './events/check.js';
export { createOpenApiDocument } from './openapi/document.js';
