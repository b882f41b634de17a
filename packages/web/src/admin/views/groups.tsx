/** Groups of this relay. Their names and messages are the members' matter; the relay knows this much. */
import { useState } from 'preact/hooks';
import { Listed, useList } from '../list.tsx';
import { Button, count, Facts, Heading, Id, Name, size, Table, When } from '../parts.tsx';
import { Opened } from './opened.tsx';

interface Group {
  readonly group_id: string;
  readonly name: string;
  readonly status: string;
  readonly owner: string;
  readonly members: number;
  readonly sequence: number;
  readonly records: number;
  readonly bytes: number;
  readonly last_day_bytes: number;
  readonly oldest: number | null;
  readonly newest: number | null;
}

export function Groups() {
  const [opened, setOpened] = useState('');
  if (opened !== '') return <OneGroup id={opened} close={() => setOpened('')} />;
  return <GroupList open={setOpened} />;
}

function GroupList({ open }: { readonly open: (group: string) => void }) {
  const list = useList<Group>('group/list');
  return (
    <>
      <Heading>Groups</Heading>
      <Listed list={list}>
        <Table
          caption="Groups of this relay, closed ones too, in the order of their IDs"
          items={list.items}
          keyOf={(one) => one.group_id}
          none="There is no group here."
          columns={[
            {
              title: 'Group',
              cell: ({ group_id, name }) => (
                <>
                  <Name text={name} /> <Id text={group_id} />
                </>
              ),
            },
            { title: 'Status', cell: ({ status }) => status },
            { title: 'Members', cell: ({ members }) => count(members), isNumber: true },
            { title: 'Messages', cell: ({ records }) => count(records), isNumber: true },
            { title: 'Stored', cell: ({ bytes }) => size(bytes), isNumber: true },
            { title: 'Last day', cell: (one) => size(one.last_day_bytes), isNumber: true },
            { title: 'Newest', cell: ({ newest }) => <When at={newest} /> },
            {
              title: 'Do',
              cell: ({ group_id }) => (
                <Button about={group_id} work={() => open(group_id)}>
                  Show
                </Button>
              ),
            },
          ]}
        />
      </Listed>
    </>
  );
}

function OneGroup({ id, close }: { readonly id: string; readonly close: () => void }) {
  return (
    <Opened<Group> title="Group" verb="group/show" params={{ group_id: id }} close={close}>
      {(found) => (
        <Facts
          of={[
            ['Name', <Name text={found.name} />],
            ['Group', <Id text={found.group_id} />],
            ['Status', found.status],
            ['Owner', <Id text={found.owner} />],
            ['Members', count(found.members)],
            ['Last sequence', count(found.sequence)],
            ['Messages stored', count(found.records)],
            ['Stored', size(found.bytes)],
            ['Stored in the last day', size(found.last_day_bytes)],
            ['Oldest message', <When at={found.oldest} />],
            ['Newest message', <When at={found.newest} />],
          ]}
        />
      )}
    </Opened>
  );
}
