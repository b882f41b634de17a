/** Notifications while the app is open and hidden. They show no text unless the person chose that. */
import type { AccountEvent, MessageContent } from '@posthouse/client';
import { visibleText } from '@posthouse/client/visible-text';
import { nameOf, titleOf } from '../parts/names.ts';
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

let isStarted = false;

/** Shows notifications for as long as the page lives. */
export function startNotifying(app: App): void {
  if (isStarted) return;
  isStarted = true;
  app.account.subscribe(
    (event) => {
      if (document.visibilityState === 'visible') return;
      const notice = noticeOf(app, event);
      if (notice !== undefined) showNotice(notice).catch(() => undefined);
    },
    // The app's own reader says what is wrong.
    { onError: () => undefined },
  );
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
      if (message.from === app.account.id) return undefined;
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
