export { eventIdOf, eventIdOfCloudEvent } from './events/event-ids.js';
export { createOpenApiDocument } from './openapi/document.js';
