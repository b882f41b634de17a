/**
 * The closed tree of what a body shows (04 §8, §8.1, 06 §10.3): plain data, without any HTML. A
 * program that shows each of these kinds as text, and calls nothing but what a person chose, runs no
 * active content of a stranger.
 */

/** What a body shows. */
export interface BodyTree {
  /**
   * `markdown` if the body was read as CommonMark; else the source is one `plain` block. `too_large`
   * is Markdown beyond a limit, of which the source is shown so that nothing of it is hidden.
   */
  readonly format: 'markdown' | 'plain' | 'unknown' | 'too_large';
  readonly blocks: readonly BlockNode[];
}

export type BlockNode =
  | { readonly kind: 'paragraph'; readonly children: readonly InlineNode[] }
  | {
      readonly kind: 'heading';
      /** 1 to 6. */
      readonly level: number;
      readonly children: readonly InlineNode[];
    }
  | { readonly kind: 'quote'; readonly children: readonly BlockNode[] }
  | {
      readonly kind: 'list';
      /** The first number of an ordered list, 0 to 999,999,999; absent for one with bullets. */
      readonly start?: number;
      /** Whether paragraphs of the items stand without space between them. */
      readonly tight: boolean;
      readonly items: readonly (readonly BlockNode[])[];
    }
  /** Code, with its line feeds; `language` is the first word after the fence. */
  | { readonly kind: 'code_block'; readonly text: string; readonly language?: string }
  | { readonly kind: 'rule' }
  /** Raw HTML of the source, to be shown as the text that it is. */
  | { readonly kind: 'source_block'; readonly text: string }
  /** Text of another format than CommonMark, with its line feeds. */
  | { readonly kind: 'plain'; readonly text: string };

export type InlineNode =
  /** Text; a line feed in it may be shown as a space. */
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'code'; readonly text: string }
  | { readonly kind: 'emphasis'; readonly children: readonly InlineNode[] }
  | { readonly kind: 'strong'; readonly children: readonly InlineNode[] }
  | { readonly kind: 'break' }
  | LinkNode
  | AttachmentNode
  | BlockedNode
  /** Raw HTML of the source, to be shown as the text that it is. */
  | { readonly kind: 'source'; readonly text: string };

/** A link to follow if a person chooses it. Nothing of it is loaded before. */
export interface LinkNode {
  readonly kind: 'link';
  /** `http:`, `https:` or `mailto:`, all ASCII, without user name and password. */
  readonly url: string;
  /**
   * Show it next to the text, which may name another one: the host that is contacted, in the ASCII
   * form of international names (`xn--…`), with its port.
   */
  readonly host: string;
  /** Whether the body asks for an image. It is a link all the same: loading it would be a request. */
  readonly image: boolean;
  readonly children: readonly InlineNode[];
}

/** A reference to one of the message's own attachments (04 §8.1). */
export interface AttachmentNode {
  readonly kind: 'attachment';
  /** Index in the attachments that were passed in. */
  readonly index: number;
  /** Whether the body asks to show the attachment at this place, after it was downloaded. */
  readonly image: boolean;
  readonly children: readonly InlineNode[];
}

/** A target that leads nowhere; the text is shown, and the target may be, as text. */
export interface BlockedNode {
  readonly kind: 'blocked';
  /**
   * `unsafe`: another scheme, a relative or malformed address, a user name in it.
   * `unresolved`: a reference that finds none of the message's own attachments.
   */
  readonly reason: 'unsafe' | 'unresolved';
  /** As written, with invisible characters made visible. */
  readonly target: string;
  readonly image: boolean;
  readonly children: readonly InlineNode[];
}
