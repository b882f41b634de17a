/** Texts of a person's screen, and of those that are blocked. */
import { inLanguage } from '../text/index.ts';

const en = {
  remove: 'Remove this contact',
  removeText: 'You will not be able to write to each other. Messages stay.',
  blockPerson: 'Block this person',
  blockText:
    'You hear nothing more of this person: no messages, no requests, and nothing in groups. Your conversation is hidden. The person is not told.',
  isBlocked: 'You blocked this person.',
  unblock: 'Unblock',
  unblockText: 'Unblocked, the person can ask to write to you again.',
  blocked: 'Blocked people',
  noneBlocked: 'You blocked nobody.',
  blockedText: 'You hear nothing of these people, on any of your devices.',
};

const de: typeof en = {
  remove: 'Kontakt entfernen',
  removeText: 'Ihr könnt einander dann nicht mehr schreiben. Nachrichten bleiben.',
  blockPerson: 'Person blockieren',
  blockText:
    'Du hörst nichts mehr von dieser Person: keine Nachrichten, keine Anfragen, und nichts in Gruppen. Eure Unterhaltung wird nicht mehr gezeigt. Die Person erfährt es nicht.',
  isBlocked: 'Du hast diese Person blockiert.',
  unblock: 'Nicht mehr blockieren',
  unblockText: 'Danach kann die Person wieder anfragen, ob sie dir schreiben darf.',
  blocked: 'Blockierte Personen',
  noneBlocked: 'Du hast niemanden blockiert.',
  blockedText: 'Von diesen Personen hörst du nichts, auf keinem deiner Geräte.',
};

export const p = inLanguage({ en, de });
