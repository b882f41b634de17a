/** What others wrote, as elements: a closed set of kinds, and nothing that is loaded by itself (04 §8). */

import type { BlockNode, BodyTree, InlineNode, LinkNode } from '@posthouse/client/content';
import { visibleText } from '@posthouse/client/visible-text';
import type { MessageBody } from '@posthouse/protocol';
import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { text as t } from '../text/index.ts';

/** What is shown of a long text at first: a page of many such texts would take seconds. */
const mostCharacters = 3_000;
const mostLines = 60;

/** Returns the beginning of a long text; a text that is not long, whole. */
function beginningOf(text: string): string {
  const lines = text.split('\n', mostLines + 1);
  const few = lines.length > mostLines ? lines.slice(0, mostLines).join('\n') : text;
  // Not between the halves of one character.
  return few.length > mostCharacters
    ? few.slice(0, mostCharacters).replace(/[\ud800-\udbff]$/, '')
    : few;
}

/** A text; of a long one the beginning, until the person wants all of it. */
export function Body({ body }: { readonly body: MessageBody }) {
  const [isWhole, setWhole] = useState(false);
  const text = isWhole ? body.text : beginningOf(body.text);
  return (
    <>
      <Whole body={text === body.text ? body : { ...body, text }} />
      {text !== body.text && (
        <button type="button" class="plain" onClick={() => setWhole(true)}>
          {t.showAll}
        </button>
      )}
    </>
  );
}

/** Texts of `text/plain` need no parser; that of Markdown is loaded when a message needs it. */
function Whole({ body }: { readonly body: MessageBody }) {
  const [tree, setTree] = useState<BodyTree | undefined>();
  const isPlain = !body.content_type.startsWith('text/markdown');
  useEffect(() => {
    let isCurrent = true;
    const show = async () => {
      const { readBody } = await import('@posthouse/client/content');
      if (isCurrent) setTree(readBody(body));
    };
    // Until it is there, offline for example, the source is shown.
    if (!isPlain) show().catch(() => undefined);
    return () => {
      isCurrent = false;
    };
  }, [body.text, body.content_type]);
  if (isPlain || tree === undefined) {
    return (
      <p class="plain" dir="auto">
        {visibleText(body.text)}
      </p>
    );
  }
  return <div dir="auto">{tree.blocks.map((block, index) => blockOf(block, index))}</div>;
}

function blockOf(block: BlockNode, key: number) {
  switch (block.kind) {
    case 'paragraph':
      return <p key={key}>{inlinesOf(block.children)}</p>;
    case 'heading':
      // A heading of a message is none of the page.
      return (
        <p key={key} class={`heading h${block.level}`}>
          {inlinesOf(block.children)}
        </p>
      );
    case 'quote':
      return <blockquote key={key}>{block.children.map(blockOf)}</blockquote>;
    case 'list': {
      const items = block.items.map((item, index) => <li key={index}>{item.map(blockOf)}</li>);
      return block.start === undefined ? (
        <ul key={key}>{items}</ul>
      ) : (
        <ol key={key} start={block.start}>
          {items}
        </ol>
      );
    }
    case 'code_block':
    case 'source_block':
      return (
        <pre key={key}>
          <code>{block.text}</code>
        </pre>
      );
    case 'rule':
      return <hr key={key} />;
    case 'plain':
      return (
        <p key={key} class="plain">
          {block.text}
        </p>
      );
  }
}

function inlinesOf(nodes: readonly InlineNode[]): ComponentChildren {
  return nodes.map(inlineOf);
}

function inlineOf(node: InlineNode, key: number): ComponentChildren {
  switch (node.kind) {
    case 'text':
      return node.text;
    case 'code':
    case 'source':
      return <code key={key}>{node.text}</code>;
    case 'emphasis':
      return <em key={key}>{inlinesOf(node.children)}</em>;
    case 'strong':
      return <strong key={key}>{inlinesOf(node.children)}</strong>;
    case 'break':
      return <br key={key} />;
    case 'link':
      return <Link key={key} link={node} />;
    case 'attachment':
      return (
        <span key={key} class="reference">
          {t.attachment} {node.index + 1}: {inlinesOf(node.children)}
        </span>
      );
    case 'blocked':
      return (
        <span key={key} class="blocked">
          {inlinesOf(node.children)} [{node.target}: {t.blockedLink}]
        </span>
      );
  }
}

/** The host stands beside the text, which may name another one. */
function Link({ link: { url, host, image, children } }: { readonly link: LinkNode }) {
  return (
    <>
      <a href={url} target="_blank" rel="noopener noreferrer">
        {image && `${t.image}: `}
        {inlinesOf(children)}
      </a>{' '}
      <span class="host">({host})</span>
    </>
  );
}
