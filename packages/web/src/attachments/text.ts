import { inLanguage, text } from '../text/index.ts';

const en = {
  attach: 'Attach files',
  drop: 'Drop files here',
  limit: (size: string) => `At most ${size} each.`,
  unchanged: 'Files are sent as they are: a photo may contain where it was taken.',
  noStore: 'Your relay stores no attachments. You can send text only.',
  offline: 'Files can be attached only while you are connected.',
  tooLarge: (size: string) => `Larger than ${size}, which is what your relay takes.`,
  tooLargeThere: 'The file is larger than your relay stores.',
  empty: 'The file is empty.',
  unreadable: 'The file cannot be read. Was it moved or is it a folder?',
  tooMuch: 'You have stored as much as the relay permits. Try again later.',
  notStored: 'The file was not stored. Try again.',
  same: 'This file is attached already.',
  storing: 'Encrypting and storing…',
  stored: 'Ready',
  wait: 'You can send when every file is stored or removed.',
  attached: 'Attached files',
  removeFile: (name: string) => `Remove ${name}`,
  kinds: { image: 'Picture', audio: 'Sound', video: 'Video', file: 'File' },
  show: 'Show',
  save: 'Save',
  loading: 'Downloading and checking…',
  elsewhere: (host: string) => `It is stored at ${host}, which sees your address if you get it.`,
  gone: 'The file is no longer stored. Ask for it again.',
  altered: 'The file is not what was sent. It was not opened.',
  tooLargeToOpen: 'The file is too large for this app.',
  failed: 'The file could not be downloaded. Try again.',
  broken: 'The browser cannot show this picture.',
  picture: 'Picture that was sent to you',
  more: (count: number) => `${count} more`,
};

const de: typeof en = {
  attach: 'Dateien anhängen',
  drop: 'Dateien hier ablegen',
  limit: (size) => `Höchstens ${size} je Datei.`,
  unchanged: 'Dateien gehen unverändert ab: Ein Foto kann enthalten, wo es entstand.',
  noStore: 'Dein Relay speichert keine Anhänge. Du kannst nur Text senden.',
  offline: 'Dateien kannst du nur anhängen, während du verbunden bist.',
  tooLarge: (size) => `Größer als ${size}, mehr nimmt dein Relay nicht.`,
  tooLargeThere: 'Die Datei ist größer, als dein Relay speichert.',
  empty: 'Die Datei ist leer.',
  unreadable: 'Die Datei lässt sich nicht lesen. Wurde sie verschoben, oder ist es ein Ordner?',
  tooMuch: 'Du hast so viel gespeichert, wie das Relay erlaubt. Versuch es später noch einmal.',
  notStored: 'Die Datei wurde nicht gespeichert. Versuch es noch einmal.',
  same: 'Diese Datei ist schon angehängt.',
  storing: 'Wird verschlüsselt und gespeichert …',
  stored: 'Bereit',
  wait: 'Du kannst senden, sobald jede Datei gespeichert oder entfernt ist.',
  attached: 'Angehängte Dateien',
  removeFile: (name) => `${name} entfernen`,
  kinds: { image: 'Bild', audio: 'Ton', video: 'Video', file: 'Datei' },
  show: 'Zeigen',
  save: 'Speichern',
  loading: 'Wird geladen und geprüft …',
  elsewhere: (host) => `Sie liegt bei ${host}; dort sieht man deine Adresse, wenn du sie holst.`,
  gone: 'Die Datei ist nicht mehr gespeichert. Bitte noch einmal darum.',
  altered: 'Die Datei ist nicht die, die gesendet wurde. Sie wurde nicht geöffnet.',
  tooLargeToOpen: 'Die Datei ist zu groß für diese App.',
  failed: 'Die Datei konnte nicht geladen werden. Versuch es noch einmal.',
  broken: 'Der Browser kann dieses Bild nicht zeigen.',
  picture: 'Bild, das dir gesendet wurde',
  more: (count) => `${count} weitere`,
};

export const t = inLanguage({ en, de });

const percent = new Intl.NumberFormat(text.language, { style: 'percent' });

/** A part from 0 to 1 for people, such as `45 %`. */
export const percentText = (part: number) => percent.format(part);

/** A number of bytes for people, such as `1.5 MB`. */
export function sizeText(bytes: number): string {
  const units = ['byte', 'kilobyte', 'megabyte', 'gigabyte'] as const;
  const step = Math.min(units.length - 1, Math.floor(Math.log2(Math.max(1, bytes)) / 10));
  return new Intl.NumberFormat(text.language, {
    ...{ style: 'unit', unit: units[step] as string, maximumFractionDigits: step > 1 ? 1 : 0 },
    unitDisplay: step === 0 ? 'long' : 'short',
  }).format(bytes / 1_024 ** step);
}
