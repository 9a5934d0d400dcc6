/** Alerts and their webhooks: what Redis keeps of them, and where they may go. */
export { type Alert, type AlertSettings, periodAt, settingsOf, validSecrets } from './alert.js';
export { AlertStore, type Fired, TooManyAlerts } from './alerts.js';
export type { Attempt, Delivery, DeliveryStore } from './deliveries.js';
export { webhookPayload } from './webhook.js';
export { type AllowedHosts, allowedHostsVariable, isAllowedHost, targetFault } from './webhook-target.js';
