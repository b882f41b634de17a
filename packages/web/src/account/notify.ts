/** Notifications while the app is open and hidden. They show no text unless the person chose that. */
import type { AccountEvent, MessageContent } from '@posthouse/client';
import { visibleText } from '@posthouse/client/visible-text';
import { effect } from '@preact/signals';
import { nameOf, titleOf } from '../parts/names.ts';
import { isVisible } from '../parts/visibility.ts';
import type { App } from '../state/app.ts';
import { notifyLevel } from '../state/notify-mark.ts';
import { n } from './notify-text.ts';

/** Characters of a text that are shown. */
const shown = 120;

interface Notice {
  readonly title: string;
  readonly body: string;
  /** Of one conversation: a later one takes the place of the one before, of other tabs too. */
  readonly tag: string;
}

/** Web Locks: each tab that can be seen has one of this name. */
const seenLock = 'posthouse.seen';

let isStarted = false;

/** Shows notifications for as long as the page lives. Its events are those that the app follows. */
export function startNotifying(app: App): void {
  if (isStarted) return;
  isStarted = true;
  holdWhileSeen();
  app.noticed = (event) => {
    const notice = noticeOf(app, event);
    if (notice === undefined) return;
    const show = async () => {
      if (!(await isSeen())) await showNotice(notice);
    };
    show().catch(() => undefined);
  };
}

/** Holds the lock while this tab can be seen. */
function holdWhileSeen(): void {
  let end: (() => void) | undefined;
  effect(() => {
    end?.();
    end = undefined;
    if (!isVisible.value) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    end = resolve;
    navigator.locks?.request(seenLock, { mode: 'shared' }, () => promise).catch(() => undefined);
  });
}

/** Whether this tab or another one of the app can be seen. */
async function isSeen(): Promise<boolean> {
  if (document.visibilityState === 'visible') return true;
  const { held = [] } = (await navigator.locks?.query()) ?? {};
  return held.some(({ name }) => name === seenLock);
}

function noticeOf(app: App, event: AccountEvent): Notice | undefined {
  const level = notifyLevel();
  if (level === undefined) return undefined;
  const bodyOf = ({ body }: MessageContent) =>
    level === 'text' && body !== undefined ? visibleText(body.text.slice(0, shown)) : n.message;
  switch (event.kind) {
    case 'message': {
      const { from } = event.message;
      if (from === app.account.id) return undefined;
      return { title: nameOf(app, from), body: bodyOf(event.message), tag: from };
    }
    case 'group-message': {
      const { groupId, message } = event;
      if (message.from === app.account.id || app.blocked.value.has(message.from)) return undefined;
      const listed = app.conversations.value.find(({ id }) => id === groupId);
      const title = titleOf(app, listed ?? { kind: 'group', id: groupId });
      return { title, body: bodyOf(message), tag: groupId };
    }
    case 'contact-request':
      return { title: app.config.name, body: n.request, tag: 'requests' };
    default:
      return undefined;
  }
}

/** By the service worker where there is one: telephones know no other way. */
async function showNotice({ title, ...options }: Notice): Promise<void> {
  const registration = await navigator.serviceWorker?.getRegistration();
  if (registration !== undefined) await registration.showNotification(title, options);
  else new Notification(title, options).onclick = () => window.focus();
}
