import type { MouseEvent, ReactNode } from 'react';
import { viewHref } from '../view/use-view.js';
import type { View } from '../view/view.js';

interface ViewLinkProps {
  readonly to: View;
  readonly navigate: (view: View) => void;
  readonly className?: string;
  readonly title?: string;
  readonly children: ReactNode;
}

/** A real link, so that a view can be opened in another tab or copied. */
export function ViewLink({ to, navigate, className, title, children }: ViewLinkProps) {
  const follow = (event: MouseEvent) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
    event.preventDefault();
    navigate(to);
  };
  return (
    <a href={viewHref(to)} className={className} title={title} onClick={follow}>
      {children}
    </a>
  );
}
