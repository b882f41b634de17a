/** The texts of the browser's language, and dates and times as it writes them. */
import { de } from './de.ts';
import { en, type Texts } from './en.ts';

/**
 * Returns the texts of the first of a person's languages that the app speaks. Parts that are loaded later
 * have texts of their own: `inLanguage({ en, de })`.
 */
export function inLanguage<Of>(texts: Readonly<Record<'en' | 'de', Of>>): Of {
  for (const language of navigator.languages) {
    if (language.startsWith('de')) return texts.de;
    if (language.startsWith('en')) return texts.en;
  }
  return texts.en;
}

export const text = inLanguage<Texts>({ en, de });

const time = new Intl.DateTimeFormat(text.language, { hour: '2-digit', minute: '2-digit' });
const day = new Intl.DateTimeFormat(text.language, {
  day: 'numeric',
  month: 'long',
  year: 'numeric',
});
const short = new Intl.DateTimeFormat(text.language, { day: '2-digit', month: '2-digit' });

const startOfDay = (date: Date) => new Date(date.getFullYear(), date.getMonth(), date.getDate());

/** Days between two moments, by the calendar. */
function daysBetween(earlier: Date, later: Date): number {
  return Math.round((startOfDay(later).getTime() - startOfDay(earlier).getTime()) / 86_400_000);
}

/** The last second of the year 9999: later ones have no usual form. */
const lastSecond = 253_402_300_799;

/** A moment that others wrote, or the nearest that can be shown. @param seconds Unix seconds */
function dateOf(seconds: number): Date {
  return new Date(Math.max(0, Math.min(lastSecond, seconds || 0)) * 1_000);
}

/** A moment for programs, such as `2026-05-03T14:05:00.000Z`. @param seconds Unix seconds */
export function isoOf(seconds: number): string {
  return dateOf(seconds).toISOString();
}

/** A time of day, such as `14:05`. @param seconds Unix seconds */
export function timeOf(seconds: number): string {
  return time.format(dateOf(seconds));
}

/** A day, such as `Today` or `3 May 2026`. @param seconds Unix seconds */
export function dayOf(seconds: number, now = new Date()): string {
  const date = dateOf(seconds);
  const days = daysBetween(date, now);
  if (days === 0) return text.today;
  return days === 1 ? text.yesterday : dateTextOf(seconds);
}

/** A date, such as `3 May 2026`. @param seconds Unix seconds */
export function dateTextOf(seconds: number): string {
  return day.format(dateOf(seconds));
}

/** A time for a list: of day if it is today's, else the date. @param seconds Unix seconds */
export function briefTimeOf(seconds: number, now = new Date()): string {
  const date = dateOf(seconds);
  return daysBetween(date, now) === 0 ? time.format(date) : short.format(date);
}

/** Whether two moments are of the same day. Both Unix seconds. */
export function isSameDay(one: number, other: number): boolean {
  return daysBetween(dateOf(one), dateOf(other)) === 0;
}
