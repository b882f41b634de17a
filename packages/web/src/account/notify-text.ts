/** Texts of notifications. */
import { inLanguage } from '../text/index.ts';

const en = {
  title: 'Notifications',
  about:
    'Shown while the app is open in this browser and you look at something else. When it is closed, nothing arrives.',
  off: 'None',
  name: 'Who wrote',
  text: 'Who wrote, and the beginning of the text',
  seen: 'Others who see your screen can read it.',
  refused:
    'The browser does not permit notifications of this page. You can change that in its settings.',
  missing: 'This browser has no notifications.',
  message: 'New message',
  request: 'Somebody asks to write to you',
};

const de: typeof en = {
  title: 'Mitteilungen',
  about:
    'Sie erscheinen, während die App in diesem Browser offen ist und du etwas anderes ansiehst. Ist sie geschlossen, kommt nichts an.',
  off: 'Keine',
  name: 'Wer geschrieben hat',
  text: 'Wer geschrieben hat, und der Anfang des Textes',
  seen: 'Wer deinen Bildschirm sieht, kann es lesen.',
  refused:
    'Der Browser erlaubt dieser Seite keine Mitteilungen. Das lässt sich in seinen Einstellungen ändern.',
  missing: 'Dieser Browser hat keine Mitteilungen.',
  message: 'Neue Nachricht',
  request: 'Jemand möchte dir schreiben',
};

export const n = inLanguage({ en, de });
