export { eventIdOf, eventIdOfCloudEvent } from './events/cloud-events.js';
export { createOpenApiDocument } from './openapi/document.js';
