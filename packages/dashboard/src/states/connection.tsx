import { onlineManager } from '@tanstack/react-query';
import { useSyncExternalStore } from 'react';

/** While the browser has no network; what is waiting goes on by itself afterwards. */
export function OfflineBanner() {
  const online = useSyncExternalStore(
    (listener) => onlineManager.subscribe(listener),
    () => onlineManager.isOnline(),
  );
  if (online) return null;
  return (
    <div className="banner" role="status">
      You are offline. What is shown stays; the page goes on by itself when the connection is back.
    </div>
  );
}
