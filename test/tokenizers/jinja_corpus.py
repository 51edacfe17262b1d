"""What the template tests render: snippets, templates of the kinds that models ship, and conversations."""

TOOL = {"type": "function", "function": {"name": "look_up", "description": "Für <b> & \"quotes\" 'single'", "parameters": {
    "type": "object", "properties": {"x": {"type": "integer", "default": 1.0, "enum": [1, 2.5, 1e20, None, True]}, "ü": {"type": "string"}},
    "required": ["x"]}}}
TOOL_BARE = {"type": "function", "function": {"name": "bare", "description": None, "parameters": None}}


def call(name, arguments, n=1):
    return {"type": "function", "id": f"call_{n}", "function": {"name": name, "arguments": arguments}}


CONVERSATIONS = [
    [{"role": "user", "content": "hi"}],
    [{"role": "system", "content": "  rules\n"}, {"role": "user", "content": "hi "}, {"role": "assistant", "content": "<think>\nabc</think>\n\nyo"},
     {"role": "user", "content": "again"}],
    [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}],
    [{"role": "system", "content": [{"type": "text", "text": "s"}]}, {"role": "user", "content": [{"type": "text", "text": ""}]}],
    [{"role": "user", "content": None}],
    [{"role": "user", "content": []}],
    [{"role": "assistant", "content": "x"}, {"role": "assistant", "content": "y"}],
    [{"role": "user", "content": "q"},
     {"role": "assistant", "content": "", "tool_calls": [call("look_up", {"x": 9007199254740993, "s": "é\"'\n\t\\", "l": [1, 2.0, {"a": None}], "e": {}})]},
     {"role": "tool", "tool_call_id": "call_1", "content": "{\"r\": 1}"}, {"role": "tool", "content": "two", "name": "look_up"},
     {"role": "assistant", "content": "done", "reasoning_content": "because", "reasoning": "because"}, {"role": "user", "content": "next"}],
    [{"role": "user", "content": "q"}, {"role": "assistant", "content": "both", "tool_calls": [call("a", {}), call("b", {"n": -0.0, "big": 10 ** 30}, 2)]},
     {"role": "tool", "tool_call_id": "call_1", "content": ""}, {"role": "tool", "tool_call_id": "call_2", "content": "x\n\ny"}],
    [{"role": "system", "content": "s"}, {"role": "system", "content": "t"}, {"role": "user", "content": ""}],
    [{"role": "developer", "content": "d"}, {"role": "user", "content": "u"}],
    [{"role": "user", "content": "\u00a0 日本語 \U0001f600\u200d🧑 \u3000"}, {"role": "assistant", "content": "{{ not a template }} {% raw %}\\n"}],
    [{"role": "user", "content": "u", "name": "bob"}, {"role": "ipython", "content": "tool said\r\nso"}],
    [],
]
SETTINGS = [{}, {"tools": [TOOL]}, {"tools": [TOOL, TOOL_BARE], "enable_thinking": False}, {"tools": [], "add_generation_prompt": False},
            {"enable_thinking": True, "reasoning_effort": "low", "documents": [{"title": "T", "text": "body"}]}]


def variables():
    """Every conversation with the defaults, every setting with five of them."""
    out = []
    for i, messages in enumerate(CONVERSATIONS):
        for k, setting in enumerate(SETTINGS):
            if k and i not in (0, 1, 2, 7, 8):
                continue
            out.append({"messages": messages, "tools": None, "documents": None, "add_generation_prompt": True, "bos_token": "<s>", "eos_token": "</s>", **setting})
    return out


TEMPLATES = {
    "turns with tools": r"""{%- if tools %}
    {{- '<|im_start|>system\n' }}
    {%- if messages[0].role == 'system' %}
        {{- messages[0].content + '\n\n' }}
    {%- endif %}
    {{- "Tools:\n<tools>" }}
    {%- for tool in tools %}
        {{- "\n" }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- "\n</tools><|im_end|>\n" }}
{%- else %}
    {%- if messages[0].role == 'system' %}
        {{- '<|im_start|>system\n' + messages[0].content + '<|im_end|>\n' }}
    {%- endif %}
{%- endif %}
{%- set ns = namespace(multi_step=true, last=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.multi_step and message.role == "user" and message.content is string and not(message.content.startswith('<r>') and message.content.endswith('</r>')) %}
        {%- set ns.multi_step = false %}
        {%- set ns.last = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.content is string %}
        {%- set content = message.content %}
    {%- else %}
        {%- set content = '' %}
    {%- endif %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\n' + content + '<|im_end|>' + '\n' }}
    {%- elif message.role == "assistant" %}
        {%- set reasoning = '' %}
        {%- if message.reasoning_content is string %}
            {%- set reasoning = message.reasoning_content %}
        {%- else %}
            {%- if '</think>' in content %}
                {%- set reasoning = content.split('</think>')[0].rstrip('\n').split('<think>')[-1].lstrip('\n') %}
                {%- set content = content.split('</think>')[-1].lstrip('\n') %}
            {%- endif %}
        {%- endif %}
        {%- if loop.index0 > ns.last and (loop.last or reasoning) %}
            {{- '<|im_start|>' + message.role + '\n<think>\n' + reasoning.strip('\n') + '\n</think>\n\n' + content.lstrip('\n') }}
        {%- else %}
            {{- '<|im_start|>' + message.role + '\n' + content }}
        {%- endif %}
        {%- if message.tool_calls %}
            {%- for tool_call in message.tool_calls %}
                {%- if (loop.first and content) or (not loop.first) %}{{- '\n' }}{%- endif %}
                {%- if tool_call.function %}{%- set tool_call = tool_call.function %}{%- endif %}
                {{- '<tool_call>\n{"name": "' + tool_call.name + '", "arguments": ' }}
                {%- if tool_call.arguments is string %}{{- tool_call.arguments }}{%- else %}{{- tool_call.arguments | tojson }}{%- endif %}
                {{- '}\n</tool_call>' }}
            {%- endfor %}
        {%- endif %}
        {{- '<|im_end|>\n' }}
    {%- elif message.role == "tool" %}
        {%- if loop.first or (messages[loop.index0 - 1].role != "tool") %}{{- '<|im_start|>user' }}{%- endif %}
        {{- '\n<tool_response>\n' + content + '\n</tool_response>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}{{- '<|im_end|>\n' }}{%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}{{- '<think>\n\n</think>\n\n' }}{%- endif %}
{%- endif %}
""",
    "headers and a date": r"""{{- bos_token }}
{%- if custom_tools is defined %}{%- set tools = custom_tools %}{%- endif %}
{%- if not date_string is defined %}
    {%- if strftime_now is defined %}{%- set date_string = strftime_now("%d %b %Y") %}{%- else %}{%- set date_string = "26 Jul 2024" %}{%- endif %}
{%- endif %}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|start|>system<|end|>\n\n" }}
{%- if tools is not none %}{{- "Environment: tools\n" }}{%- endif %}
{{- "Today: " + date_string + "\n\n" }}
{%- if tools is not none and not tools_in_user_message %}
    {%- for t in tools %}
        {{- t | tojson(indent=4) }}
        {{- "\n\n" }}
    {%- endfor %}
{%- endif %}
{{- system_message }}
{{- "<|eot|>" }}
{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|start|>' + message['role'] + '<|end|>\n\n'+ message['content'] | trim + '<|eot|>' }}
    {%- elif 'tool_calls' in message %}
        {%- if not message.tool_calls|length == 1 %}
            {{- raise_exception("one call at a time") }}
        {%- endif %}
        {%- set tool_call = message.tool_calls[0].function %}
        {{- '<|start|>assistant<|end|>\n\n{"name": "' + tool_call.name + '", "parameters": ' }}
        {{- tool_call.arguments | tojson }}
        {{- "}<|eot|>" }}
    {%- elif message.role == "tool" or message.role == "ipython" %}
        {{- "<|start|>ipython<|end|>\n\n" }}
        {%- if message.content is mapping or message.content is iterable and message.content is not string %}
            {{- message.content | tojson }}
        {%- else %}
            {{- message.content }}
        {%- endif %}
        {{- "<|eot|>" }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|start|>assistant<|end|>\n\n' }}{%- endif %}
""",
    "alternation": r"""{{ bos_token }}
{%- if messages[0]['role'] == 'system' -%}
    {%- if messages[0]['content'] is string -%}
        {%- set first_user_prefix = messages[0]['content'] + '

' -%}
    {%- else -%}
        {%- set first_user_prefix = messages[0]['content'][0]['text'] + '

' -%}
    {%- endif -%}
    {%- set loop_messages = messages[1:] -%}
{%- else -%}
    {%- set first_user_prefix = "" -%}
    {%- set loop_messages = messages -%}
{%- endif -%}
{%- for message in loop_messages -%}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}
        {{ raise_exception("Conversation roles must alternate user/assistant/user/assistant/...") }}
    {%- endif -%}
    {%- set role = "model" if message['role'] == 'assistant' else message['role'] -%}
    {{ '<turn>' + role + '
' + (first_user_prefix if loop.first else "") }}
    {%- if message['content'] is string -%}
        {{ message['content'] | trim }}
    {%- elif message['content'] is iterable -%}
        {%- for item in message['content'] -%}
            {%- if item['type'] == 'image' -%}{{ '<image>' }}{%- elif item['type'] == 'text' -%}{{ item['text'] | trim }}{%- endif -%}
        {%- endfor -%}
    {%- else -%}
        {{ raise_exception("Invalid content type") }}
    {%- endif -%}
    {{ '</turn>
' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{'<turn>model
'}}
{%- endif -%}
""",
    "macros": r"""{%- macro render_type(spec, depth=0) -%}
    {%- if spec is mapping -%}
        {%- for k, v in spec.items()|sort -%}{{ '  ' * depth }}{{ k }}: {{ render_type(v, depth + 1) }};{%- endfor -%}
    {%- elif spec is iterable and spec is not string -%}
        [{% for x in spec %}{{ render_type(x) }}{{ ', ' if not loop.last }}{% endfor %}]
    {%- else -%}{{ spec }}{%- endif -%}
{%- endmacro -%}
{%- macro visible(content) -%}
    {%- if content is string -%}{{ content }}
    {%- elif content is iterable and content is not mapping -%}
        {%- for item in content -%}{%- if item is mapping and item.type == 'text' -%}{{ item.text }}{%- elif item is string -%}{{ item }}{%- endif -%}{%- endfor -%}
    {%- elif content is none -%}{{- '' -}}{%- else -%}{{ content }}{%- endif -%}
{%- endmacro -%}
{%- set ns = namespace(n=0) -%}
{%- for tool in tools or [] -%}<fn>{{ tool.function.name }}: {{ render_type(tool.function.parameters) }}</fn>{%- endfor -%}
{%- for m in messages -%}
    {%- set ns.n = ns.n + 1 -%}
    [{{ ns.n }}:{{ m.role|upper }}{{ ' ' ~ m.name if m.name is defined }}] {{ visible(m.content) }}
    {%- if m.reasoning_content %} ({{ m.reasoning_content|title }}){% endif -%}
    {%- for c in m.tool_calls or [] -%}
        <call id={{ c.id }}>{%- for k, v in c.function.arguments|items -%}<{{ k }}>{{ v if v is string else v|tojson }}</{{ k }}>{%- endfor -%}</call>
    {%- endfor -%}
    {{ eos_token if m.role == 'assistant' }}
{% endfor -%}
{%- set users = messages|selectattr('role', 'equalto', 'user')|list -%}
users={{ users|length }} last={{ (users|last).content if users }} roles={{ messages|map(attribute='role')|join('/') }}
{%- if add_generation_prompt %} >{% endif -%}
""",
    "plain lines": """{% for message in messages %}
{{ message['role'] }}: {{ message['content'] }}
{% if not loop.last %}
---
{% endif %}
{% endfor %}
{% if add_generation_prompt %}
assistant:
{% endif %}
""",
    "generation and breaks": r"""{% for m in messages %}
    {%- if m.role == 'tool' %}{% continue %}{% endif %}
    {%- if loop.index > 4 %}{% break %}{% endif %}
    {%- if m.role == 'assistant' %}{% generation %}{% set inner = 1 %}A:{{ m.content }}{% endgeneration %}{{ inner is defined }}
    {%- else %}U:{{ m.content|string|replace('\n', ' ')|indent(2) }}{{ loop.previtem.role if loop.previtem is defined }}{{ loop.nextitem.role }}{% endif %}
{% else %}nobody{% endfor %}
{%- for d in documents or [] %}{{ loop.index }}. {{ d['title'] }}|{{ d.text }}{% endfor %}{{ reasoning_effort|default('none given') }}
""",
    "no content loop but a variable of that name": r"""{% set content = messages[-1].content %}{% for c in content %}<{{ c.text if c is mapping else c }}>{% endfor %}""",
}

FORMATS = [
    "{% for m in messages %}{{ m.content }}{% endfor %}",
    "{% for m in messages %}{% for c in m.content %}{{ c.text }}{% endfor %}{% endfor %}",
    "{% for m in messages %}{% for c in m['content'] | list %}{{ c.text }}{% endfor %}{% endfor %}",
    "{% set ms = messages[1:] %}{% for m in ms %}{% for c in m['content'] %}{{ c.text }}{% endfor %}{% endfor %}",
    "{% set a = messages %}{% set b = a | list %}{% for m in b[::-1] %}{% for c in m.content %}{{ c }}{% endfor %}{% endfor %}",
    "{% for i, m in messages %}{% for c in m.content %}{{ c }}{% endfor %}{% endfor %}",
    "{% for m in messages %}{% for k, c in m.content %}{{ c }}{% endfor %}{% endfor %}",
    "{% for m in messages %}{% for c in m.content %}{{ c }}{% endfor %}{% for k, c in m.content %}{{ c }}{% endfor %}{% endfor %}",
    "{% set ns = namespace() %}{% set ns.m = messages %}{% for m in messages %}{% for c in m.content %}{{ c }}{% endfor %}{% endfor %}",
    "{% for m in messages %}{% set content = m.content %}{% for c in content %}{{ c }}{% endfor %}{% endfor %}",
    "{% macro r(content) %}{% for c in content %}{{ c.text }}{% endfor %}{% endmacro %}{% for m in messages %}{{ m.content }}{% endfor %}",
    "{% macro r(content) %}{% for c in content %}{{ c.text }}{% endfor %}{% endmacro %}{% for m in messages %}{{ r(m.content) }}{% endfor %}",
    "{% macro r(x, y) %}{% for c in y %}{{ c.text }}{% endfor %}{% endmacro %}{% for m in messages %}{{ r(1, m['content']) }}{% endfor %}",
    "{% macro r(x, y) %}{% for c in x %}{{ c.text }}{% endfor %}{% endmacro %}{% for m in messages %}{{ r(1, m['content']) }}{% endfor %}",
    "{% macro r(x, y) %}{% for c in y %}{{ c.text }}{% endfor %}{% endmacro %}{% for m in messages %}{{ r(1, y=m['content']|list) }}{% endfor %}",
    "{% macro o(z) %}{% macro r(q) %}{% for c in z %}{{ c.text }}{% endfor %}{% endmacro %}{{ r(1) }}{% endmacro %}{% for m in messages %}{{ o(m.content) }}{% endfor %}",
    "{% macro r(x) %}{% for c in x[0] %}{{ c.text }}{% endfor %}{% endmacro %}{% for m in messages %}{{ r(m.content) }}{% endfor %}",
    "{% for m in msgs %}{% for c in m.content %}{{ c.text }}{% endfor %}{% endfor %}",
    "{% for c in messages[0].content %}{{ c }}{% endfor %}",
    "{% set m = messages[0] %}{% for c in m.content %}{{ c }}{% endfor %}",
    "{% for m in messages %}{% if m.content is string %}{{ m.content }}{% else %}{% for c in m.content if c.type == 'text' %}{{ c.text }}{% endfor %}{% endif %}{% endfor %}",
    "{% set content = 1 %}{% for c in content|list %}{{ c }}{% endfor %}",
    "{% for k, v in content %}{{ v }}{% endfor %}",
]

SNIPPETS = r'''{{ 1.0 }} {{ 1e16 }} {{ 1e-5 }} {{ 0.1+0.2 }} {{ 123456789012345678 }} {{ 3/2 }} {{ 7//2 }} {{ -7//2 }} {{ -7%3 }} {{ 7.0//2 }}
{{ 1.0//0.1 }} {{ -7.5//2 }} {{ 7.5%-2 }} {{ -7.5%2 }} {{ 5%2.5 }} {{ 0.0//3 }} {{ -1e300//1e-10 }} {{ 1e308*10 }} {{ 4//0.5 }}
{{ [1,'a',None,true,(1,),{}] }} {{ {'a':1,"b'":'x"'} }} {{ 'it\'s' ~ ["it's"] }}
{% for i in range(5) if i%2 %}{{ loop.index }}/{{ loop.length }}:{{ i }}{{ "," if not loop.last }}{% else %}none{% endfor %}
{% set ns = namespace(a=1) %}{% for i in [1,2] %}{% set ns.a = ns.a + i %}{% set z = i %}{% endfor %}{{ ns.a }}{{ z is defined }}
{% macro m(a, b=2) %}[{{ a }}{{ b }}{{ c }}]{% endmacro %}{% set c = 9 %}{{ m(1) }}{{ m(b=3, a='x') }}
{{ "abc"[::-1] }}{{ "abcdef"[1:-1] }}{{ [1,2,3][-1] }}{{ "héllo"[1] }}{{ "héllo"|length }}{{ [1,2,3][5] is defined }}
{{ x.y is defined }}
{{ x.y.z }}
{{ none.foo }}|{{ none.foo is defined }}
{{ "a,b,,c".split(",") }}{{ " a b  c ".split() }}{{ "a b c d".split(" ",2) }}{{ "  a b c  d ".split(none,1) }}{{ "".split() }}{{ "".split(",") }}
{{ {'a':[1,2]}|tojson }}{{ {'é':'<&'}|tojson(indent=2) }}{{ [1,2]|tojson(separators=(',',':')) }}{{ "é\u0001\x7f"|tojson(ensure_ascii=true) }}{{ []|tojson(indent=2) }}
{{ {'b':1,'a':{'d':1,'c':2}}|tojson(sort_keys=true) }}{{ {1:2,none:3,true:4,1.5:5}|tojson }}{{ [1]|tojson(indent=0) }}{{ "\U0001f600"|tojson(ensure_ascii=true) }}
{{ "Hello World-foo bar"|title }}{{ "hELLO wORLD"|capitalize }}{{ "they're bill's".title() }}{{ "x(y[z{q<w"|title }}
{{ "a\nb\n\nc"|indent }}|{{ "a\nb\n"|indent(2, true) }}|{{ "a\n\nb"|indent(2, blank=true) }}|{{ "a\nb"|indent(width='> ') }}
{{ [3,1,2]|sort }}{{ ['b','A','c']|sort }}{{ ['b','A']|sort(reverse=true) }}{{ {'b':1,'a':2}|dictsort }}{{ [1,1,2]|unique|list }}
{{ [{'a':2},{'a':1}]|sort(attribute='a') }}{{ ['B','b','a']|sort(case_sensitive=true) }}{{ {'b':1,'a':2}|dictsort(by='value') }}{{ ['A','a','b']|unique|list }}
{{ [{'a':1},{'a':2},{}]|selectattr('a')|list }}{{ [{'a':1},{'a':2}]|selectattr('a','equalto',2)|map(attribute='a')|list }}{{ [1,0,2]|select|list }}{{ [1,2,3]|reject('odd')|list }}
{{ [{'a':{'b':1}},{}]|map(attribute='a.b', default='-')|list }}{{ [{'a':1},{}]|rejectattr('a','defined')|list }}{{ [[1],[2,3]]|map('last')|list }}
{{ ''|default('d') }}{{ ''|default('d', true) }}{{ q|default('z') }}{{ q|d }}{{ none|default(1) }}{{ none|default(1, boolean=true) }}
{{ '%s' }}{{ 'a' 'b' }}{{ "\u00e9\t\x41" }}{{ 'a\x00b' 'c' }}{{ "\q\d" }}
{%- set a %}  block {{ 1 }} {% endset -%}[{{ a }}]
{% if x %}1{% elif not x and 1 == 1.0 %}2{% else %}3{% endif %}
{{ 1 < 2 < 3 }}{{ 1 in [1,2] }}{{ 'a' not in 'abc' }}{{ 'k' in {'k':1} }}{{ 1 is odd }}{{ 2 is divisibleby 2 }}{{ 'a' is string and 'b' is not none }}
{{ true + 1 }}{{ true|string }}{{ none|string }}{{ [true,none]|join('-') }}{{ (1,2)|list }}{{ 'abc'|list }}
{% for k, v in {'a':1,'b':2}.items() %}{{ k }}{{ v }}{% endfor %}{% for k in {'a':1} %}{{ k }}{% endfor %}
   {% if true %}
x
   {% endif %}
  {{ 1 }}
{%+ if true %}y{% endif +%}
{# c #}
z
{{- 'a' -}}   b   {{- 'c' }}
{% filter upper %}abc{% endfilter %}
{% macro m3() %}<{{ caller() }}>{% endmacro %}{% call m3() %}in{% endcall %}
{% for x in [] %}{% else %}{% set y = 1 %}{% macro z() %}2{% endmacro %}{{ y }}{{ z() }}{% endfor %}{{ y is defined }}{{ z is defined }}
{% set y = 0 %}{% for x in [] %}{% else %}{% set y = 1 %}{% endfor %}{{ y }}{% for x in [1,2] %}{% for z in [] %}{% else %}{{ loop.index }}{% set x = 9 %}{% endfor %}{{ x }}{% endfor %}
{% macro o() %}{% macro i() %}{{ caller is defined }}{% endmacro %}{{ i() }}{{ caller() }}{% endmacro %}{% call o() %}B{% endcall %}
{% macro p() %}P{{ caller() }}{% endmacro %}{% macro o() %}{% call p() %}{{ caller is defined }}{% endcall %}{{ caller() }}{% endmacro %}{% call o() %}B{% endcall %}
{% set x = 1 %}{% macro w(x=x) %}{{ x }}{% endmacro %}[{{ w() }}{{ w(2) }}]
{% set y = 1 %}{% macro w(x=y, y=2) %}{{ x }}{{ y }}{% endmacro %}[{{ w() }},{{ w(y=5) }},{{ w(7) }},{{ w(7, 8) }}]{% macro v(x, y=x) %}{{ x }}{{ y }}{% endmacro %}[{{ v(3) }},{{ v(y=5) }}]
{% macro m4() %}<{{ caller(1, 2) }}>{% endmacro %}{% call(a, b) m4() %}{{ a }}-{{ b }}{% endcall %}
{{ "x" * 3 }}{{ [1] + [2] }}{{ (1,) + (2,) }}{{ 3 * "ab" }}{{ "x" * -1 }}
{{ "abc" + 1 }}
{{ 1 + none }}
{{ messages|length }}{{ 5|length }}
{{ raise_exception("boo") }}
{{ strftime_now("%d %b %Y %H:%M %A %j") }}{{ strftime_now("%Y-%m-%d %B %y %e %I %p %%") }}
{% for i in range(10) %}{% if i == 3 %}{% continue %}{% endif %}{% if i == 6 %}{% break %}{% endif %}{{ i }}{% endfor %}
{% for i in [1,2] %}{% continue %}{% else %}else{% endfor %}{% for i in [1,2] %}{% if i == 2 %}{% break %}{% endif %}{% else %}else{% endfor %}{% for i in [1] %}{% break %}{% else %}else{% endfor %}
{{ [1,2].append(3) }}
{{ {'a':1}.update({'b':2}) }}
{{ "abc".startswith(("x","a")) }}{{ "aXbX".replace("X","-",1) }}{{ "abcabc".count("bc") }}{{ "abc".find("c") }}{{ "--a--".strip("-") }}{{ ",".join(["a","b"]) }}
{{ {'items': 3}.items is mapping }}{{ {'items': 3}['items'] }}{{ {'get':1}.get('get') }}{{ {'a':1}.get('b') }}{{ {'a':1}.get('b', 'c') }}
{{ [[1,2],[3]]|map('length')|list }}{{ ['a']|map('upper')|join }}{{ "3"|int + 1 }}{{ "x"|int(7) }}{{ "3.7"|int }}{{ 3.9|int }}
{{ "0x10"|int }}{{ "inf"|int }}{{ "nan"|int(2) }}{{ " 12 "|int }}{{ "1e3"|int }}{{ ""|int }}{{ none|int(5) }}{{ true|int }}{{ -3.9|int }}
{{ '{} {}'.format(1, none) }}{{ '{1}{0}'.format('a', 2.0) }}{{ '{x}-{y}'.format(x=[1], y=u) }}{{ '{{}}'.format() }}{{ '{}'.format(true) }}
{{ '{}{0}'.format(1) }}
{{ '{}'.format() }}
{{ '{'.format() }}
{{ '}'.format() }}
{{ '{a}'.format(b=1) }}
{{ [3,1,2]|min }}{{ [3,1,2]|max }}{{ ['b','A','c']|min }}{{ ['b','C']|max }}{{ []|min is defined }}{{ [{'a':2},{'a':1}]|min(attribute='a') }}{{ ['b','A']|max(case_sensitive=true) }}{{ [1, 1.0]|max }}{{ [true, 1]|min }}
{{ "a'<"|safe + "b'<\"&>" }}{{ "b'<" + "a'<"|safe }}{{ ("x<"|safe + "y<"|safe) + "z<" }}{{ "a<"|safe ~ "b<" ~ "c<" }}{{ ("a<"|safe ~ "b<") + "c<" }}{{ ["<"]|tojson|safe }}{{ ("<"|safe)|tojson }}{{ "<"|safe == "<" }}{{ ("<"|safe)|length }}{{ 5|safe + "<" }}
{{ none|selectattr("a")|list }}{{ 0|map("string")|list }}{{ ""|select|list }}{{ u|reject|list }}{{ none|list }}
{{ loop is defined }}{{ [1,2,3]|first }}{{ []|last is defined }}{{ "abc"|first }}{{ [3]|last }}
{{ 1 if false }}|{{ (1 if false) is defined }}
{% set x, y = (1, 2) %}{{ x }}{{ y }}{{ not x == 2 }}{{ -x|abs }}
{{ "a" if 1 else "b" if 2 else "c" }}{{ {'a': {'b': [10,20]}}.a.b[1] }}{{ {'a': {'b': [10,20]}}['a'].b.0 }}
{% for m in [1,2,3] %}{{ loop.previtem is defined }}{{ loop.nextitem }}{{ loop.first }}{{ loop.revindex }}{{ loop.depth }}{% endfor %}
{{ [1,[2,{'x':'é'}]] }}{{ "é\n" ~ ["é\n\\"] }}
{{ 10 % 3 }}{{ 2.5 * 2 }}{{ 1 // 0 }}
{{ undefined_fn() }}
{{ "a" is sequence }}{{ [] is iterable }}{{ 1 is iterable }}{{ {} is sequence }}{{ u is sequence }}{{ u is none }}{{ u == v }}{{ u|length }}{{ u ~ 'x' }}{{ [u] }}
{{ "ab\tc"|tojson }}{{ 1.5|tojson }}{{ 1e100|tojson }}{{ true|tojson }}{{ none|tojson }}
{% set a = [1,2,3] %}{{ a[1:] }}{{ a[:-1] }}{{ a[::2] }}{{ a[5:] }}{{ "abc"[5:] }}{{ a[-5:2] }}{{ a[::-2] }}{{ a[2:0:-1] }}
{{ ["\u00a0", "\u200b", "\u00e9"] }}
{% generation %}g{% endgeneration %}
{{ "A" < "a" }}{{ "é" > "z" }}{{ 1 == "1" }}{{ 1 == true }}{{ [1] == [1.0] }}{{ {'a':1} == {'a':1.0} }}{{ none == u }}
{{ "line1\r\nline2" }}{{ 'tab	x' }}
{{ [1,2]|select('odd') is sequence }}{{ ([1]|map('string')) is iterable }}{% if [1]|selectattr('nope') %}yes{% endif %}
{{ range(3)[1] }}{{ range(3)|length }}{{ range(2, 8, 3)|list }}{{ range(3) is sequence }}{{ 2 in range(3) }}{{ range(0)|list }}{% if range(0) %}t{% else %}f{% endif %}
{{ {'a':1}.items()|list }}{{ {'a':1}.keys()|list }}{{ {'a':1}.values()|list }}{{ {}.items()|length }}{% if {}.items() %}t{% else %}f{% endif %}{{ {'a':1}.items() is sequence }}
{{ [1,2,3]|reverse|list }}{{ "abc"|reverse }}{{ [1,2]|last }}{{ (1,2)|reverse|list }}{{ {'a':1}|items|list }}
{{ ([1]|map('string'))|length }}
{{ [1]|map('string') + [1] }}
{{ ({'a':1}.items())[0] is defined }}{{ ([1]|select)[0] is defined }}
{{ 1 is none or 2 }}{{ 0 or '' or 'x' }}{{ 1 and 0 }}{{ not 1 in [1] }}{{ 1 not in [2] and true }}
{{ 'a' ~ 1 ~ none ~ 1.0 ~ [1] ~ true }}{{ 'a' + 'b' * 2 }}{{ 2 + 3 * 4 - 1 }}{{ (2 + 3) * 4 }}{{ 7 - 2 - 1 }}{{ 2 * 3 ~ 4 }}
{{ x | trim }}{{ '  a ' | trim }}{{ 'xxaxx'|trim('x') }}{{ ' \u3000a\u00a0\u200b'|trim }}{{ 5|trim }}
{{ 'a' is in ['a'] }}{{ 3 is ge 3 }}{{ 3 is lt(2) }}{{ 'x' is eq 'x' }}{{ 5 is number }}{{ true is number }}{{ true is integer }}{{ 1.0 is float }}{{ range is callable }}
{{ messages[0].content }}{{ messages[0]['role'] }}{{ messages[-1].nope is defined }}{{ (messages|first).role }}{{ messages[99] is defined }}
{% set messages = messages[1:] %}{{ messages }}{% for m in messages %}x{% else %}empty{% endfor %}
{% for a in [1,2] %}{% for b in [3,4] %}{{ loop.index }}{{ loop.depth0 }}{% endfor %}{{ loop.index }}{% endfor %}
{% for i in [1] %}{% set x = 5 %}{% if true %}{% set y = 6 %}{% endif %}{{ x }}{{ y }}{% endfor %}{{ x }}{{ y }}
{% if true %}{% set k = 1 %}{% endif %}{{ k }}{% set x = 1 %}{% for i in [1,2] %}{{ x }}{% set x = x + 1 %}{% endfor %}{{ x }}
{% macro outer(v) %}{% macro inner(w) %}{{ v }}{{ w }}{% endmacro %}{{ inner(2) }}{% endmacro %}{{ outer(1) }}
{% macro f(x) %}{% if x > 0 %}{{ x }}{{ f(x - 1) }}{% endif %}{% endmacro %}{{ f(3) }}
{% macro f(a) %}{{ a }}{{ a is defined }}{% endmacro %}{{ f() }}{{ f(1) }}
{% macro f(a) %}{% endmacro %}{{ f(1, 2) }}
{% macro f(a) %}{% endmacro %}{{ f(b=1) }}
{% macro f(a='x', b=a) %}{{ a }}{{ b }}{% endmacro %}{{ f() }}{{ f('y') }}
{{ namespace(a=1).a }}{{ namespace().b is defined }}{{ dict(a=1, b=2) }}{{ dict(a=1).a }}
{% set ns.x = 1 %}
{{ 'abc' is string }}{{ 'a' in 'abc' }}{{ 1 in 'abc' }}
{{ [] | join }}{{ ['a', 1] | join(', ') }}{{ 'abc' | join('-') }}{{ u | join }}
{{ (1, 2)[0] }}{{ (1,) }}{{ () }}{{ [ ] }}{{ { } }}{{ [1,] }}{{ {'a':1,} }}
{{ "a" | upper }}{{ "A" | lower }}{{ 5 | upper }}{{ none | upper }}{{ "aé" | length }}
{{ "a%sb" }}{{ '{}' }}{{ "{{" }}{{ '%}' }}
{{ messages is defined and messages is not none and messages is iterable }}{{ tools is none }}{{ tools is defined }}{{ nope is undefined }}'''.split("\n") + [
    "a\n{% if true %}\nb\n{% endif %}\n", "{% if true -%}\n   b\n{%- endif %}\n\n", "x {%- if true %} y {%- endif -%} z", "{{ 'a' }}\n", "{{ 'a' }}\n\n",
    " {#- c -#} x", "\n{% set x = 1 %}\n{{ x }}", "   {# c #}\nq", "{% for i in [1,2] %}\n  {{ i }}\n{% endfor %}", "a {%+ if true %}b{%+ endif %} c",
    "{% if true %}  \n  {% endif %}", "{{ '}}' }}{{ {'a':{'b':1}} }}", "{{ {'a':{'b':1}}.a.b }}", "{%if true%}x{%endif%}", "a{#\n\n#}\n\nb",
    "{% set x = 'a\nb' %}{{ x }}", "\r\na\r\n{% if true %}\r\nb{% endif %}\r\n", "  {{ 1 }}  \n  {% if true %} {# c #} x {% endif %}\t\n", "\t{%- if true -%}\t\n\tx\t\n{% endif %}",
    "{%\nif\ntrue\n%}x{%\nendif\n%}", "{{\n'x'\n}}\n\n\n", "{% set a = 1 -%}   \n\n  {{ a }}", "{# a #}{# b #}\n{# c -#}\n\nx", "a{% if true +%}\nb{% endif %}", "\u3000{%- if true %}x{% endif %}",
    "{{ 1 }", "{% if %}", "{% endif %}", "{% for x in %}{% endfor %}", "{{ 'abc }}", "{% nothing %}", "{{ a b }}", "{{ | }}", "{% set = 1 %}", "{{ [1, 2 }}", "{# x", "{% if true %}",
]
# What the worker can do and we refuse by name: the caller asks the worker then.
REFUSED = ["{% macro o() %}{{ varargs|length }}{{ kwargs|length }}{% endmacro %}{{ o(1,2,z=3) }}", "{% macro o(caller=none) %}{{ caller() }}{% endmacro %}{% call o() %}B{% endcall %}",
           "{{ 0x10 }}", "{{ 1_000 }}", "{{ 2**3 }}", "{% with a = 1 %}{{ a }}{% endwith %}", "{% raw %}{{ x }}{% endraw %}", "{{ 'É'|lower }}", "{{ 'a'.rsplit('x') }}",
           "{{ '%s' % 1 }}", "{{ ('a<'|safe).strip() }}", "{{ ('a<'|safe)|trim }}", "{{ ('a<'|safe)[0] }}", "{{ ('a'|safe) * 2 }}", "{{ '{:>3}'.format(1) }}", "{{ '{a.b}'.format(a=1) }}", "{{ [1]|sum }}", "{{ messages|groupby('role') }}", "{% for x in [1] recursive %}{% endfor %}", "{{ 'a'|center(5) }}", "{{ range(3) }}", "{{ {'a':1}.items() }}",
           "{% set g = [1]|map('string') %}{% for x in g %}{{ x }}{% endfor %}{% for x in g %}{{ x }}{% endfor %}", "{{ range(9)[1:3]|list }}", "{{ strftime_now('%c') }}", "{{ namespace }}",
           "{{ ['\U00010d4a'] }}", "{{ loop }}", "{{ 'x'.__class__ }}", "{{ 99999999999999999999 }}", "{{ 9223372036854775807 + 1 }}", "{{ '\\101' }}", "{{ '\\é' }}", "{{ [1]|tojson(indent=-1) }}"]
