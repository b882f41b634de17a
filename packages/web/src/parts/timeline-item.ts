/** What a timeline knows of a message. */
export interface TimelineItem {
  /** Its place: later ones have a higher one. */
  readonly order: number;
  readonly isOwn: boolean;
  /** What a screen reader says when it arrives. */
  announcement(): string;
}
